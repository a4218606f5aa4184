/** What a measurement found: means, and each question. */

import { figure } from "../../format";
import { useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { Card, Scrolling } from "../../parts/shapes";
import { Notice } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address } from "../../route";
import { DEFAULTS, type Settings } from "../../settings";
import { toAddress } from "../search/place";
import { type Compared, compared, conclusion, type Measured, type Run } from "./measures";

const MEASURES = [
  ["ndcg", "nDCG@10", "ndcg"],
  ["recall", "recall@10", "recall"],
  ["reciprocal_rank", "MRR@10", "mrr"],
] as const;

const COMMAND = "ragstack eval search judged";

export function Figures({ runs }: { runs: Run[] }) {
  const text = useMessages("quality");
  const rows = compared(runs);
  const failed = runs.flatMap((run) => run.failed);
  if (rows.length === 0)
    return <Notice kind="warning">{text.noSearchWorked(failed[0]?.reason ?? text.noQuestions)}</Notice>;
  const isPair = runs.length > 1;
  const incomplete = rows.flat().filter(({ complete }) => !complete).length;
  const open = sum(rows.flat().map(({ shown, judged }) => shown - judged));
  const figures = MEASURES.map(([name, title, meaning]) => ({
    title,
    meaning,
    means: means(rows, (each) => each[name]),
  }));
  return (
    <Card title={isPair ? text.compared : text.ofSettings}>
      {isPair && <p className="conclusion">{conclusion(rows)}</p>}
      {failed.length > 0 && (
        <Notice kind="warning">{text.notSearched(failed.length, failed[0]?.reason ?? "")}</Notice>
      )}
      {incomplete > 0 && <Notice kind="warning">{text.incompleteRuns(incomplete)}</Notice>}
      <Table
        className="figures"
        rows={figures}
        keyOf={({ title }) => title}
        columns={[
          [text.columns.mean, ({ title }) => title],
          [isPair ? "A" : text.columns.value, ({ means }) => figure(means[0] ?? 0), "number"],
          isPair && ["B", ({ means }) => figure(means[1] ?? 0), "number"],
          isPair && [text.columns.change, ({ means: [a = 0, b = 0] }) => signed(b - a), "number"],
        ]}
      />
      <p className="small">
        {text.questionCount(rows.length)} {open > 0 && text.unjudged(open)} {text.few}{" "}
        <a href={address("quality", {}, "questions")}>
          <code>{COMMAND}</code>
        </a>
      </p>
      <details className="small">
        <summary>{text.measures}</summary>
        <dl className="meanings">
          {figures.map(({ title, meaning }) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{text.meanings[meaning]}</dd>
            </div>
          ))}
        </dl>
      </details>
    </Card>
  );
}

export function PerQuestion({ runs, settings: setups }: { runs: Run[]; settings: Settings[] }) {
  const text = useMessages("quality");
  const isPair = runs.length > 1;
  const worth = ([a, b]: Compared) => (b ? b.ndcg - a.ndcg : a.ndcg);
  const rows = compared(runs).sort((one, two) => worth(one) - worth(two));
  if (rows.length === 0) return null;
  const why = (text: string) => {
    const [settings = DEFAULTS, other = null] = setups.map((each) => ({ ...each, question: text }));
    return address("search", toAddress({ settings, other, missing: "" }));
  };
  return (
    <Scrolling className="card scroll" label={text.each}>
      <Table
        caption={isPair ? text.losesMost : text.worstFirst}
        rows={rows}
        keyOf={([{ question }]) => question.id}
        columns={[
          [
            text.columns.question,
            ([{ question }]) => (
              <a href={address("quality", { q: question.text }, "results")}>{plain(question.text)}</a>
            ),
          ],
          [isPair ? text.ofA("nDCG@10") : "nDCG@10", ([a]) => figure(a.ndcg), "number"],
          isPair && [text.ofB("nDCG@10"), ([, b]) => figure(b?.ndcg ?? 0), "number"],
          isPair && [text.columns.change, (row) => signed(worth(row)), "number"],
          !isPair && ["recall@10", ([a]) => figure(a.recall), "number"],
          !isPair && [text.columns.oneByRank, ([a]) => figure(a.reciprocal_rank), "number"],
          [
            text.columns.notJudged,
            (row) => row.map(({ shown, judged }) => shown - judged).join(" / "),
            "number",
          ],
          [
            text.columns.search,
            ([{ question }]) => <a href={why(question.text)}>{isPair ? text.compareLink : text.whyLink}</a>,
          ],
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
