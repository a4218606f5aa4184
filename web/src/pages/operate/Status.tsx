/** The state of the service at a glance, read again every 30 seconds. */

import { useEffect, useState } from "react";
import { useKept, useLoaded } from "../../context";
import { count, duration, time } from "../../format";
import { Card } from "../../parts/Card";
import { ErrorBox, Loading, Notice } from "../../parts/states";
import { TableHead } from "../../parts/TableHead";
import { address } from "../../route";
import { isStatus, meaning, STATUSES } from "../../status";
import { CONVERSATIONS, type Conversations, NO_CONVERSATIONS } from "../ask/conversation";
import { problems, quietAlarms, type ServiceStatus } from "./service";
import { Throughput } from "./Throughput";

const REFRESH_SECONDS = 30;

export function StatusTab() {
  const [isPaused, setPaused] = useState(false);
  const status = useLoaded("status", (client, signal) => client.get("/api/status", {}, signal));
  const [readAt, setReadAt] = useState<Date | null>(null);
  useEffect(() => {
    if (status.data) setReadAt(new Date());
  }, [status.data]);
  const { reload } = status;
  useEffect(() => {
    if (isPaused) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, REFRESH_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [isPaused, reload]);
  if (status.data === null) {
    return status.error ? <ErrorBox error={status.error} onRetry={reload} /> : <Loading what="the status" />;
  }
  return (
    <>
      <div className="row">
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Continue to refresh" : "Pause"}
        </button>
        <button type="button" onClick={reload} disabled={status.isLoading}>
          Refresh now
        </button>
        <span className="small">
          {readAt && `Read at ${readAt.toLocaleTimeString()}`}
          {isPaused ? ", paused" : `, every ${REFRESH_SECONDS} seconds`}
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
      </div>
      <Throughput hours={status.data.throughput} />
      <Cost />
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
        <table>
          <thead className="visually-hidden">
            <tr>
              <th scope="col">Status</th>
              <th scope="col">Documents</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((name) => (
              <tr key={name}>
                <th scope="row">
                  <a
                    href={address("documents", { status: name })}
                    className={`badge ${isStatus(name) ? meaning(name).badge : ""}`}
                  >
                    {isStatus(name) ? meaning(name).label : name}
                  </a>
                </th>
                <td className="number">{(documents[name] ?? 0).toLocaleString()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function Queues({ status }: { status: ServiceStatus }) {
  const hasAges = status.queues.some((queue) => typeof queue.oldest_seconds === "number");
  return (
    <Card title="Queues">
      <table>
        <TableHead
          columns={["Queue", { number: "Waiting" }, { number: "In flight" }, hasAges && { number: "Oldest" }]}
        />
        <tbody>
          {status.queues.map((queue) => (
            <tr key={queue.name}>
              <th scope="row">{queue.name}</th>
              <td className="number">{queue.waiting.toLocaleString()}</td>
              <td className="number">{queue.in_flight.toLocaleString()}</td>
              {hasAges && <td className="number">{duration(queue.oldest_seconds)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <span className={`badge ${status.dead_letters > 0 ? "bad" : "good"}`}>
          {count(status.dead_letters, "dead letter")}
        </span>{" "}
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
            <span className={`badge ${firing.length > 0 ? "bad" : "good"}`}>
              {count(firing.length, "alarm")}
            </span>{" "}
            of {alarms.length}
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
          <span className={`badge ${ALARM_STATES[alarm.state].kind}`}>{ALARM_STATES[alarm.state].title}</span>{" "}
          {alarm.name}
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

const JOB_KINDS: Record<string, string> = {
  COMPLETE: "good",
  INCOMPLETE: "warn",
  FAILED: "bad",
};

function Reconciliation({ job }: { job: ServiceStatus["last_reconciliation"] }) {
  return (
    <Card title="Last reconciliation">
      {job === null ? (
        <p className="small">None was made yet.</p>
      ) : (
        <>
          <p>
            <span className={`badge ${JOB_KINDS[job.status] ?? "accent"}`}>{job.status.toLowerCase()}</span>{" "}
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

/** Tokens are what the answers of this tab report; the interface keeps no sum and knows no prices. */
function Cost() {
  const [{ turns }] = useKept<Conversations>(CONVERSATIONS, NO_CONVERSATIONS);
  const used = turns.flatMap(({ response }) => response?.usage ?? []);
  const sum = (member: "input_tokens" | "output_tokens") =>
    used.reduce((total, usage) => total + usage[member], 0);
  const isEstimated = used.some((usage) => usage.estimated);
  return (
    <Card title="Cost of questions">
      {used.length === 0 ? (
        <p className="small">
          Known only for questions of this tab: <a href={address("ask")}>ask one</a>, and its tokens are
          counted here.
        </p>
      ) : (
        <p>
          <strong>{count(used.length, "question")}</strong> of this tab:{" "}
          {sum("input_tokens").toLocaleString()} tokens read and {sum("output_tokens").toLocaleString()}{" "}
          written
          {isEstimated && ", partly estimated"}.
        </p>
      )}
      <p className="small">
        From the usage that each answer reports. The service keeps no sum over all users and knows no prices;
        AWS Cost Explorer has those. Quoted answers need no model and cost no tokens.
      </p>
    </Card>
  );
}
