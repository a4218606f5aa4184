/** The state of the service at a glance, read again every 30 seconds, and less often while nothing changes. */

import { useEffect, useRef, useState } from "react";
import { useLoaded, useRepeated } from "../../context";
import { count, duration, time } from "../../format";
import { Badge, Button, Card, Hidden } from "../../parts/shapes";
import { Await, Notice, sentence } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address } from "../../route";
import { isStatus, JOB_BADGES, meaning, STATUSES } from "../../status";
import { nextPause, problems, quietAlarms, type ServiceStatus, SHORTEST_PAUSE, wordSearch } from "./service";
import { Throughput } from "./Throughput";

export function StatusTab() {
  const [isPaused, setPaused] = useState(false);
  const status = useLoaded("status", (client, signal) => client.get("/api/status", {}, signal));
  const [readAt, setReadAt] = useState<Date | null>(null);
  const [pause, setPause] = useState(SHORTEST_PAUSE);
  const before = useRef<ServiceStatus | null>(null);
  useEffect(() => {
    const [last, next] = [before.current, status.data];
    if (next === null || next === last) return;
    before.current = next;
    setReadAt(new Date());
    setPause((seconds) => nextPause(seconds, last, next));
  }, [status.data]);
  const { reload } = status;
  useRepeated(pause, !isPaused, reload);
  if (status.data === null) return <Await of={status} what="the status" />;
  return (
    <>
      <div className="row">
        <Button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Continue to refresh" : "Pause"}
        </Button>
        <Button onClick={reload} disabled={status.isLoading}>
          Refresh now
        </Button>
        <span className="small">
          {readAt && `Read at ${readAt.toLocaleTimeString()}`}
          {isPaused ? ", paused" : `, again after ${duration(pause)}`}
        </span>
      </div>
      {status.error && (
        <Notice kind="warning">
          These figures are old, because the last refresh failed: {status.error.message}
        </Notice>
      )}
      <Glance status={status.data} />
      <div className="tiles">
        <Documents documents={status.data.documents} />
        <Queues status={status.data} />
        <Alarms alarms={status.data.alarms} />
        <Reconciliation job={status.data.last_reconciliation} />
        <WordSearch found={status.data.word_search} />
      </div>
      <Throughput hours={status.data.throughput} />
      {status.data.notes.map((note) => (
        <Notice key={note}>{note}</Notice>
      ))}
    </>
  );
}

function Glance({ status }: { status: ServiceStatus }) {
  const found = problems(status);
  const alarms = quietAlarms(status);
  return found.length === 0 ? (
    <p className={`box glance ${alarms.isGood ? "good" : ""}`}>
      No document failed, and no dead letter waits. {alarms.text}
    </p>
  ) : (
    <div className="box warning glance">
      <h2>{found.length === 1 ? "One thing needs" : `${found.length} things need`} attention</h2>
      <ul>
        {found.map((problem) => (
          <li key={problem}>{problem}</li>
        ))}
      </ul>
    </div>
  );
}

function Documents({ documents }: { documents: Record<string, number> }) {
  const isUsed = (name: string) => (documents[name] ?? 0) > 0;
  const others = Object.keys(documents).filter((name) => isUsed(name) && !isStatus(name));
  const shown = [...STATUSES.filter(isUsed), ...others];
  return (
    <Card title="Documents">
      {shown.length === 0 ? (
        <p className="small">There are no documents yet.</p>
      ) : (
        <Table
          rows={shown}
          keyOf={(name) => name}
          columns={[
            [
              <Hidden key="status">Status</Hidden>,
              (name) => (
                <a
                  href={address("documents", { status: name })}
                  className={`badge ${isStatus(name) ? meaning(name).badge : ""}`}
                >
                  {isStatus(name) ? meaning(name).label : name}
                </a>
              ),
            ],
            [
              <Hidden key="documents">Documents</Hidden>,
              (name) => (documents[name] ?? 0).toLocaleString(),
              "number",
            ],
          ]}
        />
      )}
    </Card>
  );
}

function Queues({ status }: { status: ServiceStatus }) {
  const hasAges = status.queues.some((queue) => typeof queue.oldest_seconds === "number");
  return (
    <Card title="Queues">
      <Table
        rows={status.queues}
        keyOf={({ name }) => name}
        columns={[
          ["Queue", ({ name }) => name],
          ["Waiting", ({ waiting }) => waiting.toLocaleString(), "number"],
          ["In flight", ({ in_flight }) => in_flight.toLocaleString(), "number"],
          hasAges && ["Oldest", ({ oldest_seconds }) => duration(oldest_seconds), "number"],
        ]}
      />
      <p>
        <Badge kind={status.dead_letters > 0 ? "bad" : "good"}>
          {count(status.dead_letters, "dead letter")}
        </Badge>{" "}
        {status.dead_letters > 0 && <a href={address("documents", { tab: "failures" })}>Replay or discard</a>}
      </p>
    </Card>
  );
}

const ALARM_STATES = {
  ALARM: { kind: "bad", title: "alarm" },
  OK: { kind: "good", title: "OK" },
  INSUFFICIENT_DATA: { kind: "", title: "no data" },
} as const;

/** A deployment has about fifty alarms, so those that fire are shown, and the others on demand. */
function Alarms({ alarms }: { alarms: ServiceStatus["alarms"] }) {
  const firing = (alarms ?? []).filter((alarm) => alarm.state === "ALARM");
  const others = (alarms ?? []).filter((alarm) => alarm.state !== "ALARM");
  const silent = others.filter((alarm) => alarm.state === "INSUFFICIENT_DATA").length;
  return (
    <Card title="Alarms">
      {alarms === null ? (
        <p className="small">Unknown; a note below says why.</p>
      ) : (
        <>
          <p>
            <Badge kind={firing.length > 0 ? "bad" : "good"}>{count(firing.length, "alarm")}</Badge> of{" "}
            {alarms.length}
          </p>
          {firing.length > 0 && <AlarmList alarms={firing} />}
          {others.length > 0 && (
            <details>
              <summary>
                {others.length - silent} OK, {silent} without data
              </summary>
              <AlarmList alarms={others} />
            </details>
          )}
        </>
      )}
    </Card>
  );
}

function AlarmList({ alarms }: { alarms: NonNullable<ServiceStatus["alarms"]> }) {
  return (
    <ul className="alarms">
      {alarms.map((alarm) => (
        <li key={alarm.name}>
          <Badge kind={ALARM_STATES[alarm.state].kind}>{ALARM_STATES[alarm.state].title}</Badge> {alarm.name}
          {alarm.state === "ALARM" && (
            <p className="small">
              {alarm.reason} Since {time(alarm.since)}.
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

function WordSearch({ found }: { found: ServiceStatus["word_search"] }) {
  if (!found) return null;
  const { title, isGood } = wordSearch(found.search_type);
  return (
    <Card title="Search">
      <p>
        <Badge kind={isGood ? "good" : ""}>{title}</Badge>
      </p>
      {found.reason && <p className="small">{sentence(found.reason)}</p>}
    </Card>
  );
}

function Reconciliation({ job }: { job: ServiceStatus["last_reconciliation"] }) {
  return (
    <Card title="Last reconciliation">
      {job === null ? (
        <p className="small">None was made yet.</p>
      ) : (
        <>
          <p>
            <Badge kind={JOB_BADGES[job.status] ?? "accent"}>{job.status.toLowerCase()}</Badge>{" "}
            {time(job.finished_at ?? job.started_at ?? job.created_at)}
          </p>
          {job.reason && <p className="small">{job.reason}</p>}
          <dl className="facts">
            {Object.entries(job.report)
              .filter(([, value]) => ["number", "string", "boolean"].includes(typeof value))
              .map(([name, value]) => (
                <div key={name}>
                  <dt>{name.replaceAll("_", " ")}</dt>
                  <dd>{String(value)}</dd>
                </div>
              ))}
          </dl>
          <p>
            <a href={address("documents", { tab: "jobs" })}>All jobs</a>
          </p>
        </>
      )}
    </Card>
  );
}
