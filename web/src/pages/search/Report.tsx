/** How the parallel parts of a search went. */

import type { RetrieveResponse, SliceReport } from "../../api/types";
import { milliseconds, percent } from "../../format";
import { TableHead } from "../../parts/TableHead";
import { Bar } from "./Bar";
import { groups, isKnown, reportName, type SliceGroup, whereName } from "./ranking";

const STATUS = {
  failed: { badge: "bad", label: "failed" },
  timeout: { badge: "warn", label: "too late" },
} as const;

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
        <TableHead columns={["Search", "Time", { number: "Hits" }, { number: "Trust" }]} />
        {groups(response.slices).map((group) => (
          <tbody key={group.name}>
            {group.isNamed && (
              <tr>
                <th scope="rowgroup" colSpan={4}>
                  {group.name}
                  {group.reason && <p className="small">{group.reason}.</p>}
                </th>
              </tr>
            )}
            {group.reports.map((report, index) => (
              <SliceRow key={index} report={report} group={group} total={total} />
            ))}
          </tbody>
        ))}
        <tbody>
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

function SliceRow({ report, group, total }: { report: SliceReport; group: SliceGroup; total: number }) {
  const { status, milliseconds: time, error, reason, trust } = report;
  const own = [error, group.isNamed ? null : reason].filter(Boolean).map((text) => `${text}.`);
  return (
    <>
      <tr className={own.length > 0 ? "remarked" : ""}>
        <th scope="row" className={group.isNamed ? "member" : ""}>
          {group.isNamed ? whereName(report) : reportName(report)}{" "}
          {status !== "ok" && <span className={`badge ${STATUS[status].badge}`}>{STATUS[status].label}</span>}
        </th>
        <td className="timed">
          <Bar share={(time ?? 0) / total} kind={status === "ok" ? "time" : "late"} />
          {isKnown(time) ? milliseconds(time) : "–"}
        </td>
        <td className="number">{report.hits ?? 0}</td>
        <td className="number">{percent(trust)}</td>
      </tr>
      {own.length > 0 && (
        <tr className="remark">
          <td colSpan={4} className="small">
            {own.join(" ")}
          </td>
        </tr>
      )}
    </>
  );
}

export function CorporaTable({ corpora }: { corpora: RetrieveResponse["corpora"] }) {
  const most = Math.max(1, ...corpora.map((corpus) => corpus.candidates));
  return (
    <table>
      <TableHead columns={["Collection", "Candidates", { number: "Results" }]} />
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
