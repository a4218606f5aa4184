/** What a measurement found: means, and each question. */

import { count, figure } from "../../format";
import { plain } from "../../parts/names";
import { Card, Scrolling } from "../../parts/shapes";
import { Notice } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address } from "../../route";
import { DEFAULTS, type Settings } from "../../settings";
import { toAddress } from "../search/place";
import { type Compared, compared, conclusion, type Measured, type Run } from "./measures";

const MEASURES = [
  ["ndcg", "nDCG@10"],
  ["recall", "recall@10"],
  ["reciprocal_rank", "MRR@10"],
] as const;

export function Figures({ runs }: { runs: Run[] }) {
  const rows = compared(runs);
  const failed = runs.flatMap((run) => run.failed);
  if (rows.length === 0)
    return <Notice kind="warning">No search worked: {failed[0]?.reason ?? "there are no questions"}</Notice>;
  const isPair = runs.length > 1;
  const incomplete = rows.flat().filter(({ complete }) => !complete).length;
  const open = sum(rows.flat().map(({ shown, judged }) => shown - judged));
  const figures = MEASURES.map(([name, title]) => ({ title, means: means(rows, (each) => each[name]) }));
  return (
    <Card title={isPair ? "A and B compared" : "Quality of these settings"}>
      {isPair && <p className="conclusion">{conclusion(rows)}</p>}
      {failed.length > 0 && (
        <Notice kind="warning">
          {count(failed.length, "question")} could not be searched, and {failed.length === 1 ? "is" : "are"}{" "}
          left out: {failed[0]?.reason}
        </Notice>
      )}
      {incomplete > 0 && (
        <Notice kind="warning">
          {incomplete} {incomplete === 1 ? "search was" : "searches were"} incomplete, so figures may be too
          low.
        </Notice>
      )}
      <Table
        className="figures"
        rows={figures}
        keyOf={({ title }) => title}
        columns={[
          ["Mean", ({ title }) => title],
          [isPair ? "A" : "Value", ({ means }) => figure(means[0] ?? 0), "number"],
          isPair && ["B", ({ means }) => figure(means[1] ?? 0), "number"],
          isPair && ["Change", ({ means: [a = 0, b = 0] }) => signed(b - a), "number"],
        ]}
      />
      <p className="small">
        {count(rows.length, "question")}.{" "}
        {open > 0 &&
          `${count(open, "result")} without a judgment count as irrelevant, so the quality may be higher. `}
        Few questions say little. <code>ragstack eval search</code> measures the questions that you{" "}
        <a href={address("quality", {}, "questions")}>export</a>, with 95 % intervals.
      </p>
    </Card>
  );
}

export function PerQuestion({ runs, settings: setups }: { runs: Run[]; settings: Settings[] }) {
  const isPair = runs.length > 1;
  const worth = ([a, b]: Compared) => (b ? b.ndcg - a.ndcg : a.ndcg);
  const rows = compared(runs).sort((one, two) => worth(one) - worth(two));
  if (rows.length === 0) return null;
  const why = (text: string) => {
    const [settings = DEFAULTS, other = null] = setups.map((each) => ({ ...each, question: text }));
    return address("search", toAddress({ settings, other, missing: "" }));
  };
  return (
    <Scrolling className="card scroll" label="Each question">
      <Table
        caption={isPair ? "Each question, those that lose most with B first" : "Each question, worst first"}
        rows={rows}
        keyOf={([{ question }]) => question.id}
        columns={[
          [
            "Question",
            ([{ question }]) => (
              <a href={address("quality", { q: question.text }, "results")}>{plain(question.text)}</a>
            ),
          ],
          [isPair ? "nDCG@10 of A" : "nDCG@10", ([a]) => figure(a.ndcg), "number"],
          isPair && ["nDCG@10 of B", ([, b]) => figure(b?.ndcg ?? 0), "number"],
          isPair && ["Change", (row) => signed(worth(row)), "number"],
          !isPair && ["recall@10", ([a]) => figure(a.recall), "number"],
          !isPair && ["1 / rank", ([a]) => figure(a.reciprocal_rank), "number"],
          ["Not judged", (row) => row.map(({ shown, judged }) => shown - judged).join(" / "), "number"],
          ["Search", ([{ question }]) => <a href={why(question.text)}>{isPair ? "Compare" : "Why?"}</a>],
        ]}
      />
    </Scrolling>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The mean of each run. */
function means(rows: readonly Compared[], value: (measured: Measured) => number): number[] {
  return (rows[0] ?? []).map((_, run) => sum(rows.map((row) => value(row[run] ?? row[0]))) / rows.length);
}

function signed(value: number): string {
  if (Math.abs(value) < 0.0005) return "0";
  return value < 0 ? `−${figure(-value)}` : `+${figure(value)}`;
}
