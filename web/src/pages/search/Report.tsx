/** How the parallel parts of a search went. */
import type { RetrieveResponse } from "../../api/types";
import { milliseconds, percent } from "../../parts/names";
import { Bar } from "./Bar";
import { reportName } from "./ranking";

const STATUS = { ok: null, failed: "bad", timeout: "warn" } as const;

/** The searches ran at the same time, so each bar begins at 0 and the longest decides. */
export function SlicesTable({ response }: { response: RetrieveResponse }) {
  const total = Math.max(
    response.milliseconds,
    1,
    ...response.slices.map((report) => report.milliseconds ?? 0),
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="scrolls" tabIndex={0} aria-label="Searches in parallel">
      <table className="slices">
        <thead>
          <tr>
            <th scope="col">Search</th>
            <th scope="col">Time</th>
            <th scope="col" className="number">
              Hits
            </th>
            <th scope="col" className="number">
              Trust
            </th>
          </tr>
        </thead>
        <tbody>
          {response.slices.map((report, index) => (
            <tr key={index}>
              <th scope="row">
                {reportName(report)}{" "}
                {report.status !== "ok" && (
                  <span className={`badge ${STATUS[report.status]}`}>
                    {report.status === "timeout" ? "too late" : "failed"}
                  </span>
                )}
                {(report.reason || report.error) && (
                  <p className="small">{[report.error, report.reason].filter(Boolean).join(". ")}</p>
                )}
              </th>
              <td className="timed">
                <Bar
                  share={(report.milliseconds ?? 0) / total}
                  kind={report.status === "ok" ? "time" : "late"}
                />
                {report.milliseconds === null ? "–" : milliseconds(report.milliseconds)}
              </td>
              <td className="number">{report.hits ?? 0}</td>
              <td className="number">{percent(report.trust)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Whole search</th>
            <td className="timed">
              <Bar share={response.milliseconds / total} kind="total" />
              {milliseconds(response.milliseconds)}
            </td>
            <td />
            <td />
          </tr>
        </tbody>
      </table>
    </section>
  );
}

export function CorporaTable({ corpora }: { corpora: RetrieveResponse["corpora"] }) {
  const most = Math.max(1, ...corpora.map((corpus) => corpus.candidates));
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Collection</th>
          <th scope="col">Candidates</th>
          <th scope="col" className="number">
            Results
          </th>
        </tr>
      </thead>
      <tbody>
        {corpora.map((corpus) => (
          <tr key={corpus.name}>
            <th scope="row">{corpus.name}</th>
            <td className="timed">
              <Bar share={corpus.candidates / most} kind="time" />
              {corpus.candidates}
            </td>
            <td className="number">{corpus.results}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
