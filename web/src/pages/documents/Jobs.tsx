/** Jobs: the last reconciliation, the ones before, and a button that starts the next. */

import { useEffect } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import { duration, time } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { plain } from "../../parts/names";
import { Badge, Button, Card } from "../../parts/shapes";
import { Await, Empty, ErrorBox, Notice, sentence } from "../../parts/states";
import { JOB_BADGES } from "../../status";
import { Findings } from "../operate/Findings";
import { summary } from "../operate/service";

type JobList = components["schemas"]["JobList"];
type Job = JobList["jobs"][number];

const POLL_SECONDS = 3;

function isRunning(job: Job): boolean {
  return job.finished_at === null;
}

export function Jobs() {
  const shared = useMessages("documents");
  const text = shared.jobs;
  const { client } = useApp();
  const announce = useAnnounce();
  const jobs = useLoaded("jobs", (api, signal) => api.get("/api/ingestion-jobs", {}, signal));
  const { run, isRunning: isStarting, error } = useAction();
  const { data, isLoading, reload } = jobs;
  const running = data?.jobs.some(isRunning) ?? false;
  useEffect(() => {
    if (!running || isLoading) return;
    const timer = setTimeout(reload, POLL_SECONDS * 1000);
    return () => clearTimeout(timer);
  }, [running, isLoading, reload]);
  const start = () =>
    run(async () => {
      await client.post("/api/ingestion-jobs", { kind: "reconcile" });
      announce(text.queued);
      reload();
    });
  if (!data) return <Await of={jobs} what={text.loaded} />;
  const last = data.jobs.find((job) => job.kind === "reconcile" && !isRunning(job));
  return (
    <div className="stack">
      <div className="row spread">
        <h2>{text.title}</h2>
        <div className="row">
          <Button onClick={reload}>{shared.refresh}</Button>
          {/* Not disabled, which would take the focus from it. */}
          <Button kind="primary" aria-disabled={isStarting} onClick={() => isStarting || void start()}>
            {text.start}
          </Button>
        </div>
      </div>
      <p className="small">{text.hint}</p>
      {error?.status === 409 && running && <Notice kind="warning">{text.alreadyRunning}</Notice>}
      {error && error.status !== 409 && <ErrorBox error={error} onRetry={start} />}
      {data.jobs.length === 0 && (
        <Empty title={text.none} icon="history">
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {last && (
        <Card title={text.last} level={3}>
          <Facts job={last} />
          <Report report={last.report} />
        </Card>
      )}
      <ul className="stack">
        {data.jobs
          .filter((job) => job !== last)
          .map((job) => (
            <li key={job.id} className="card">
              <details>
                <summary>
                  <Facts job={job} />
                </summary>
                <Report report={job.report} />
              </details>
            </li>
          ))}
      </ul>
    </div>
  );
}

function Facts({ job }: { job: Job }) {
  const text = useMessages("documents").jobs;
  const seconds =
    job.started_at && job.finished_at
      ? (Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000
      : null;
  return (
    <span className="row job-facts">
      <strong>{text.kinds[job.kind] ?? job.kind}</strong>
      <Badge kind={JOB_BADGES[job.status] ?? "accent"}>
        {isRunning(job) && <span className="spinner" aria-hidden="true" />}{" "}
        {text.statuses[job.status] ?? job.status}
      </Badge>
      <span className="small">
        {time(job.created_at)}
        {seconds !== null && ` · ${duration(seconds)}`} · <bdi>{text.by(plain(job.by))}</bdi>
      </span>
      {job.reason && <span dir="auto">{sentence(plain(job.reason))}</span>}
    </span>
  );
}

/** What a job did, in words, and its report: an object of counts and lists, which depends on the kind of job. */
function Report({ report }: { report: Job["report"] }) {
  const text = useMessages("documents").jobs;
  const entries = Object.entries(report);
  if (entries.length === 0) return <p className="small">{text.noReport}</p>;
  const said = summary(report);
  return (
    <>
      {said && <p>{sentence(said)}</p>}
      <Findings report={report} />
      <details>
        <summary>{text.figures}</summary>
        <dl className="report" lang="en">
          {entries.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll("_", " ")}</dt>
              <dd dir="auto">
                {typeof value === "object" && value !== null ? <Value value={value} /> : String(value)}
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}

function Value({ value }: { value: object }) {
  const text = useMessages("documents").jobs;
  const entries = Object.entries(value);
  const count = entries.length;
  if (count === 0) return <>{text.nothing}</>;
  if (!Array.isArray(value) && entries.every(([, each]) => typeof each !== "object" || each === null))
    return <>{entries.map(([name, each]) => `${name.replaceAll("_", " ")}: ${String(each)}`).join(" · ")}</>;
  return (
    <details>
      <summary>{count}</summary>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
