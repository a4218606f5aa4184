/** How the parallel parts of a search went. */

import type { RetrieveResponse, SliceReport } from "../../api/types";
import { isKnown, milliseconds, percent } from "../../format";
import { Badge, Scrolling } from "../../parts/shapes";
import { HeadRow, Table } from "../../parts/Table";
import { Bar } from "./Bar";
import { groups, reportName, type SliceGroup, whereName } from "./ranking";

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
    <Scrolling label="Searches in parallel">
      <table className="slices">
        <thead>
          <HeadRow columns={[["Search"], ["Time"], ["Hits", "number"], ["Trust", "number"]]} />
        </thead>
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
    </Scrolling>
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
          {status !== "ok" && <Badge kind={STATUS[status].badge}>{STATUS[status].label}</Badge>}
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
    <Table
      rows={corpora}
      keyOf={({ name }) => name}
      columns={[
        ["Collection", ({ name }) => name],
        [
          "Candidates",
          ({ candidates }) => (
            <>
              <Bar share={candidates / most} kind="time" />
              {candidates}
            </>
          ),
          "timed",
        ],
        ["Results", ({ results }) => results, "number"],
      ]}
    />
  );
}
