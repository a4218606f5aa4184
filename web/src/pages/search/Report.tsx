/** How the parallel parts of a search went. */

import type { RetrieveResponse, SliceReport } from "../../api/types";
import { isKnown, milliseconds, percent } from "../../format";
import { useMessages } from "../../messages";
import { Badge, Scrolling } from "../../parts/shapes";
import { sentence } from "../../parts/states";
import { HeadRow, Table } from "../../parts/Table";
import { Bar } from "./Bar";
import { groups, reportName, type SliceGroup, whereName } from "./ranking";

/** The searches ran at the same time, so each bar begins at 0 and the longest decides. */
export function SlicesTable({ response }: { response: RetrieveResponse }) {
  const text = useMessages("search");
  const { columns } = text;
  const total = Math.max(
    response.milliseconds,
    1,
    ...response.slices.map((report) => report.milliseconds ?? 0),
  );
  return (
    <Scrolling label={text.parallel}>
      <table className="slices">
        <thead>
          <HeadRow
            columns={[[columns.search], [columns.time], [columns.hits, "number"], [columns.trust, "number"]]}
          />
        </thead>
        {groups(response.slices).map((group) => (
          <tbody key={group.name}>
            {group.isNamed && (
              <tr>
                <th scope="rowgroup" colSpan={4}>
                  {group.name}
                  {group.reason && <p className="small">{sentence(group.reason)}</p>}
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
            <th scope="row">{text.wholeSearch}</th>
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
  const text = useMessages("search");
  const { status, milliseconds: time, error, reason, trust } = report;
  const own = [error, group.isNamed ? null : reason].filter(isKnown).map(sentence);
  return (
    <>
      <tr className={own.length > 0 ? "remarked" : ""}>
        <th scope="row" className={group.isNamed ? "member" : ""}>
          {group.isNamed ? whereName(report) : reportName(report)}{" "}
          {status !== "ok" && (
            <Badge kind={status === "failed" ? "bad" : "warn"}>
              {status === "failed" ? text.failed : text.late}
            </Badge>
          )}
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
  const text = useMessages("search");
  const most = Math.max(1, ...corpora.map((corpus) => corpus.candidates));
  return (
    <Table
      rows={corpora}
      keyOf={({ name }) => name}
      columns={[
        [text.collection, ({ name }) => name],
        [
          text.candidates,
          ({ candidates }) => (
            <>
              <Bar share={candidates / most} kind="time" />
              {candidates}
            </>
          ),
          "timed",
        ],
        [text.results, ({ results }) => results, "number"],
      ]}
    />
  );
}
