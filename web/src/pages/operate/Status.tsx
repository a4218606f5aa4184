/** The state of the service at a glance, read again every minute, and less often while nothing changes. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { components } from "../../api/schema";
import { useLoaded, useRepeated } from "../../context";
import { ago, clock, duration, number, time } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Icon } from "../../parts/Icon";
import { plain } from "../../parts/names";
import { Badge, Card, IconButton } from "../../parts/shapes";
import { Await, Notice, sentence } from "../../parts/states";
import { Facts, Table } from "../../parts/Table";
import { address } from "../../route";
import { isStatus, meaning, STATUSES } from "../../status";
import { Findings } from "./Findings";
import { Prose } from "./Prose";
import {
  backlog,
  DECISIONS,
  firing,
  JOBS,
  nextPause,
  problems,
  readings,
  type ServiceStatus,
  SHORTEST_PAUSE,
  silent,
  summary,
  TO_DECIDE,
} from "./service";
import { Throughput } from "./Throughput";

type Job = components["schemas"]["JobAnswer"];

export function StatusTab() {
  const text = useMessages("admin").status;
  const announce = useAnnounce();
  const [isPaused, setPaused] = useState(false);
  const status = useLoaded("status", (client, signal) => client.get("/api/status", {}, signal));
  const [readAt, setReadAt] = useState<Date | null>(null);
  const [pause, setPause] = useState(SHORTEST_PAUSE);
  const before = useRef<ServiceStatus | null>(null);
  /** Somebody asked for the next status, and hears that it is there. */
  const isAsked = useRef(false);
  const { data, reload } = status;
  useEffect(() => {
    const last = before.current;
    if (data === null || data === last) return;
    before.current = data;
    setReadAt(new Date());
    setPause((seconds) => nextPause(seconds, last, data));
    if (isAsked.current) announce(text.refreshed);
    isAsked.current = false;
  }, [data, announce, text]);
  useRepeated(pause, !isPaused, reload);
  if (data === null) return <Await of={status} what={text.loading} lines={6} />;
  return (
    <>
      <div className="row spread">
        <p className="small">
          {readAt && text.readAt(clock(readAt))} · {isPaused ? text.paused : text.next(duration(pause))}
        </p>
        <div className="row" aria-busy={status.isLoading}>
          <IconButton
            icon="retry"
            label={text.refresh}
            onClick={() => {
              isAsked.current = true;
              reload();
            }}
          />
          <IconButton
            icon={isPaused ? "play" : "pause"}
            label={isPaused ? text.resume : text.pause}
            onClick={() => setPaused(!isPaused)}
          />
        </div>
      </div>
      {status.error && <Notice kind="warning">{text.old(sentence(status.error.message))}</Notice>}
      <Glance status={data} />
      <div className="tiles">
        <Documents documents={data.documents} />
        <Decisions count={data.dead_letters} />
        <Backlog status={data} />
        <AlarmTile status={data} />
        <WordSearch found={data.word_search} />
        <Reconciliation job={data.last_reconciliation} />
      </div>
      <Throughput hours={data.throughput} />
      <Details status={data} />
    </>
  );
}

/** What needs attention, if anything does. */
function Glance({ status }: { status: ServiceStatus }) {
  const text = useMessages("admin").status;
  const found = problems(status);
  if (found.length === 0)
    return (
      <p className="box glance good">
        <Icon name="done" /> {text.allWell}
      </p>
    );
  return (
    <section className="box warning glance">
      <h2>
        <Icon name="warning" /> {text.attention(found.length)}
      </h2>
      <ul>
        {found.map((problem) => (
          <li key={problem.text}>
            <bdi>{problem.text}</bdi> {problem.href && <a href={problem.href}>{text.show}</a>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface TileProps {
  title: string;
  /** What matters, to be read from far away. */
  figure: ReactNode;
  kind?: "good" | "warn" | "bad" | undefined;
  className?: string;
  children?: ReactNode;
}

function Tile({ title, figure, kind, className = "", children }: TileProps) {
  return (
    <Card title={title} className={`tile ${className}`}>
      <p className={`tile-figure ${kind ?? ""}`}>{figure}</p>
      {children}
    </Card>
  );
}

function Documents({ documents }: { documents: Record<string, number> }) {
  const text = useMessages("admin").status;
  const isUsed = (name: string) => (documents[name] ?? 0) > 0;
  const others = Object.keys(documents).filter((name) => isUsed(name) && !isStatus(name));
  const shown = [...STATUSES.filter(isUsed), ...others].map((name) => ({
    name,
    count: documents[name] ?? 0,
    label: isStatus(name) ? meaning(name).label : name,
    kind: isStatus(name) ? meaning(name).badge : "",
  }));
  const all = shown.reduce((sum, { count }) => sum + count, 0);
  let from = 0;
  return (
    <Tile title={text.documents} figure={number(all)} className="wide">
      {shown.length === 0 ? (
        <p className="small">{text.noDocuments}</p>
      ) : (
        <>
          <svg className="shares" viewBox={`0 0 ${all} 1`} preserveAspectRatio="none" aria-hidden="true">
            {shown.map(({ name, count, kind }) => {
              from += count;
              return <rect key={name} className={kind} x={from - count} width={count} height={1} />;
            })}
          </svg>
          <ul className="shares-legend">
            {shown.map(({ name, count, label, kind }) => (
              <li key={name}>
                <a href={address("documents", { status: name })}>
                  <span className={`swatch ${kind}`} /> {label} <strong>{number(count)}</strong>
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </Tile>
  );
}

function Decisions({ count }: { count: number }) {
  const text = useMessages("admin").status;
  return (
    <Tile title={text.decisions} figure={number(count)} kind={count > 0 ? "bad" : "good"}>
      <p className="small">{count > 0 ? text.decisionsHint : text.noDecisions}</p>
      {count > 0 && (
        <p>
          <a href={TO_DECIDE}>{text.decide}</a>
        </p>
      )}
    </Tile>
  );
}

function Backlog({ status }: { status: ServiceStatus }) {
  const text = useMessages("admin").status;
  const { waiting, inFlight, oldest } = backlog(status);
  const said = [
    waiting === 0 && inFlight === 0 && text.noQueue,
    inFlight > 0 && text.inFlight(inFlight),
    waiting > 0 && (oldest === null ? text.oldestUnknown : text.oldest(duration(oldest))),
  ].filter(Boolean);
  return (
    <Tile title={text.queue} figure={number(waiting)}>
      <p className="small">{said.join(", ")}</p>
    </Tile>
  );
}

function AlarmTile({ status }: { status: ServiceStatus }) {
  const text = useMessages("admin").status;
  const ringing = firing(status).length;
  const quiet = silent(status).length;
  const { alarms, notes } = status;
  if (alarms === null)
    return (
      <Tile title={text.alarms} figure={text.unknown} className="worded">
        {notes.map((note) => (
          <p key={note} className="small">
            <Prose text={note} />
          </p>
        ))}
      </Tile>
    );
  return (
    <Tile
      title={text.alarms}
      figure={number(ringing)}
      // An alarm without data has not judged anything.
      kind={ringing > 0 ? "bad" : quiet === 0 ? "good" : undefined}
    >
      <p className="small">
        {ringing > 0 ? text.firing(ringing) : text.noAlarms}{" "}
        {quiet > 0 ? text.withoutData(quiet, alarms.length) : text.ofAlarms(alarms.length)}
      </p>
    </Tile>
  );
}

function WordSearch({ found }: { found: ServiceStatus["word_search"] }) {
  const text = useMessages("admin").status;
  if (!found) return null;
  const type = found.search_type;
  return (
    <Tile
      title={text.search}
      figure={type === null ? text.searchNotKnown : text.searches[type]}
      className="worded"
      kind={type === "HYBRID" ? "good" : undefined}
    >
      {found.reason && (
        <p className="small">
          <Prose text={found.reason} />
        </p>
      )}
    </Tile>
  );
}

function Reconciliation({ job }: { job: Job | null }) {
  const text = useMessages("admin").status;
  if (job === null)
    return (
      <Tile title={text.reconciliation} figure={text.neverReconciled} className="worded wide">
        <p className="small">{text.neverReconciledHint}</p>
        <p>
          <a href={JOBS}>{text.allJobs}</a>
        </p>
      </Tile>
    );
  const found = summary(job.report);
  return (
    <Tile
      title={text.reconciliation}
      figure={ago(job.finished_at ?? job.started_at ?? job.created_at)}
      className="worded wide"
      kind={job.status === "FAILED" ? "bad" : job.status === "INCOMPLETE" ? "warn" : undefined}
    >
      <p className="small">
        {[text.jobStates[job.status], found && sentence(found)].filter(Boolean).join(" ")}
      </p>
      <p>
        <a href={JOBS}>{text.allJobs}</a>
      </p>
    </Tile>
  );
}

function Details({ status }: { status: ServiceStatus }) {
  const text = useMessages("admin").status;
  const { alarms, last_reconciliation: job } = status;
  return (
    <div className="details">
      <Card title={text.queues}>
        <Queues queues={status.queues} />
      </Card>
      {alarms && <Alarms status={status} />}
      {job && (
        <Card title={text.reconciliationDetails}>
          <JobFacts job={job} />
        </Card>
      )}
    </div>
  );
}

function Queues({ queues }: Pick<ServiceStatus, "queues">) {
  const text = useMessages("admin").status;
  const hasAges = queues.some((queue) => typeof queue.oldest_seconds === "number");
  const isLast = (name: string) => name === DECISIONS;
  return (
    <Table
      rows={queues.toSorted((a, b) => Number(isLast(a.name)) - Number(isLast(b.name)))}
      keyOf={({ name }) => name}
      columns={[
        [text.queueName, ({ name }) => text.queueNames[name] ?? name],
        [text.waiting, ({ waiting }) => number(waiting), "number"],
        [text.working, ({ in_flight }) => number(in_flight), "number"],
        hasAges && [text.age, ({ oldest_seconds }) => duration(oldest_seconds), "number"],
      ]}
    />
  );
}

const ALARM_KINDS = { ALARM: "bad", OK: "good", INSUFFICIENT_DATA: "" } as const;

/** A deployment has about fifty alarms, so those that fire are shown, and the others on demand. */
function Alarms({ status }: { status: ServiceStatus }) {
  const text = useMessages("admin").status;
  const others = (status.alarms ?? []).filter((alarm) => alarm.state !== "ALARM");
  const quiet = silent(status).length;
  const ringing = firing(status);
  return (
    <Card title={text.alarmDetails}>
      {ringing.length > 0 ? <AlarmList alarms={ringing} /> : <p>{text.noAlarms}</p>}
      {others.length > 0 && (
        <details>
          <summary>
            {[
              others.length > quiet && text.okAlarms(others.length - quiet),
              quiet > 0 && text.silentAlarms(quiet),
            ]
              .filter(Boolean)
              .join(", ")}
          </summary>
          <AlarmList alarms={others} />
        </details>
      )}
    </Card>
  );
}

function AlarmList({ alarms }: { alarms: NonNullable<ServiceStatus["alarms"]> }) {
  const text = useMessages("admin").status;
  return (
    <ul className="alarms">
      {alarms.map((alarm) => (
        <li key={alarm.name}>
          <Badge kind={ALARM_KINDS[alarm.state]}>{text.alarmStates[alarm.state]}</Badge>{" "}
          {alarm.state === "ALARM" && (
            <>
              <Prose text={alarm.reason} /> {text.since(time(alarm.since))}{" "}
            </>
          )}
          <bdi className="small">{plain(alarm.name)}</bdi>
        </li>
      ))}
    </ul>
  );
}

function JobFacts({ job }: { job: Job }) {
  const text = useMessages("admin").status;
  const seconds = Number(job.report.seconds);
  return (
    <>
      <Facts
        rows={[
          [text.finished, job.finished_at && time(job.finished_at)],
          [text.took, Number.isFinite(seconds) && duration(seconds)],
          [text.reason, job.reason && <Prose text={job.reason} />],
          [text.read, readings(job.report, text)],
        ]}
      />
      <Findings report={job.report} />
    </>
  );
}
