/** What a measurement found: means with intervals, differences, and each question. */

import { useMemo } from "react";
import { Card } from "../../parts/Card";
import { plain } from "../../parts/names";
import { Notice } from "../../parts/states";
import { TableHead } from "../../parts/TableHead";
import { address } from "../../route";
import { DEFAULTS, type Settings } from "../../settings";
import { toAddress } from "../search/place";
import { conclusion, difference, figure, type Interval, interval } from "./measures";
import { type Measured, paired, type Run } from "./measuring";

const MEASURES = [
  ["ndcg", "nDCG@10"],
  ["recall", "recall@10"],
  ["reciprocalRank", "MRR@10"],
] as const;

const NAMES = ["A", "B"] as const;

export function Figures({ runs }: { runs: Run[] }) {
  const rows = useMemo(() => paired(runs), [runs]);
  const [a = [], b] = rows;
  const count = a.length;
  const failed = runs.flatMap((run) => run.failed);
  const incomplete = rows.flat().filter(({ complete }) => !complete).length;
  const results = rows.map((row) => row.reduce((sum, each) => sum + each.of, 0));
  const open = rows.map((row) => row.reduce((sum, each) => sum + each.of - each.judged, 0));
  const figures = useMemo(
    () =>
      MEASURES.map(([measure, title]) => ({
        title,
        each: rows.map((row) => interval(row.map((measured) => measured[measure]))),
        change: b
          ? difference(
              a.map((measured) => measured[measure]),
              b.map((measured) => measured[measure]),
            )
          : null,
      })),
    [rows, a, b],
  );
  if (count === 0) {
    return <Notice kind="warning">No search worked: {failed[0]?.reason ?? "there are no questions"}</Notice>;
  }
  const main = figures[0];
  return (
    <Card title={b ? "A and B compared" : "Quality of these settings"}>
      {main?.change && <p className="conclusion">{conclusion(main.change, count)}</p>}
      {failed.length > 0 && (
        <Notice kind="warning">
          {failed.length} {failed.length === 1 ? "search" : "searches"} failed; the questions are left out:{" "}
          {failed[0]?.reason}
        </Notice>
      )}
      {incomplete > 0 && (
        <Notice kind="warning">
          {incomplete} {incomplete === 1 ? "search was" : "searches were"} incomplete, so figures may be too
          low.
        </Notice>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard */}
      <section className="scroll" tabIndex={0} aria-label="Figures">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">Measure</th>
              <th scope="col" className="number">
                Mean
              </th>
              <th scope="col" className="number">
                95 % interval
              </th>
              <th scope="col" className="chart">
                <span className="scale">
                  <span>0</span>
                  <span>.5</span>
                  <span>1</span>
                </span>
              </th>
            </tr>
          </thead>
          <tbody>
            {figures.flatMap(({ title, each }) =>
              each.map((found, place) => (
                <tr key={`${title} ${place}`}>
                  <th scope="row">
                    {title}
                    {b && ` of ${NAMES[place]}`}
                  </th>
                  <IntervalCells interval={found} from={0} to={1} kind={NAMES[place] ?? "A"} />
                </tr>
              )),
            )}
          </tbody>
        </table>
      </section>
      {main?.change && <Differences figures={figures} />}
      <p className="small">
        {count === 1 ? "1 question" : `${count} questions`}. The intervals come from 2,000 bootstrap samples
        of the questions, always the same ones.{" "}
        {open.map((number, place) => (
          <span key={NAMES[place]}>
            {b && `${NAMES[place]}: `}
            {number} of the {results[place]} results {number === 1 ? "was" : "were"} never judged
            {place < open.length - 1 ? "; " : ". "}
          </span>
        ))}
        {open.some((number) => number > 0) && "They count as irrelevant, so the quality may be higher."}
      </p>
    </Card>
  );
}

function Differences({ figures }: { figures: { title: string; change: Interval | null }[] }) {
  const changes = figures.flatMap(({ title, change }) => (change ? [{ title, change }] : []));
  const widest = Math.max(0.01, ...changes.flatMap(({ change }) => [-change.low, change.high]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="scroll" tabIndex={0} aria-label="Differences">
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">How much better B is</th>
            <th scope="col" className="number">
              Mean
            </th>
            <th scope="col" className="number">
              95 % interval
            </th>
            <th scope="col" className="chart">
              <span className="scale">
                <span>{figure(-widest)}</span>
                <span>0</span>
                <span>{figure(widest)}</span>
              </span>
            </th>
          </tr>
        </thead>
        <tbody>
          {changes.map(({ title, change }) => (
            <tr key={title}>
              <th scope="row">{title}</th>
              <IntervalCells interval={change} from={-widest} to={widest} kind="difference" />
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface CellsProps {
  interval: Interval;
  from: number;
  to: number;
  kind: "A" | "B" | "difference";
}

/** The numbers, and a drawing of them: the numbers are its text. */
function IntervalCells({ interval: { mean, low, high }, from, to, kind }: CellsProps) {
  const at = (value: number) => (100 * (value - from)) / (to - from);
  const shown = kind === "difference" ? signed : figure;
  return (
    <>
      <td className="number">{shown(mean)}</td>
      <td className="number">
        {shown(low)} to {shown(high)}
      </td>
      <td className="chart">
        <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" className={kind}>
          <path className="grid" d="M0 0V10M50 0V10M100 0V10" />
          <path className="range" d={`M${at(low)} 5H${at(high)}`} />
          <path className="mean" d={`M${at(mean)} 5h0.01`} />
        </svg>
      </td>
    </>
  );
}

export function PerQuestion({ runs, settings: setups }: { runs: Run[]; settings: Settings[] }) {
  const [a = [], b] = paired(runs);
  const rows = a.map((measured, place) => ({ measured, other: b?.[place] ?? null }));
  const worth = ({ measured, other }: (typeof rows)[number]) =>
    other ? other.ndcg - measured.ndcg : measured.ndcg;
  const sorted = [...rows].sort((one, two) => worth(one) - worth(two));
  if (rows.length === 0) return null;
  const why = ({ question: { text } }: Measured) => {
    const [settings = DEFAULTS, other = null] = setups.map((each) => ({ ...each, question: text }));
    return address("search", toAddress({ settings, other, missing: "" }));
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="card scroll" tabIndex={0} aria-label="Each question">
      <table>
        <caption>
          {b ? "Each question, those that lose most with B first" : "Each question, worst first"}
        </caption>
        <TableHead
          columns={[
            "Question",
            { number: b ? "nDCG@10 of A" : "nDCG@10" },
            { number: b ? "nDCG@10 of B" : "recall@10" },
            { number: b ? "Change" : "1 / rank" },
            { number: "Not judged" },
            "Search",
          ]}
        />
        <tbody>
          {sorted.map(({ measured, other }) => (
            <tr key={measured.question.id}>
              <th scope="row" dir="auto">
                <a href={address("judge", { q: measured.question.text }, "results")}>
                  {plain(measured.question.text)}
                </a>
              </th>
              <td className="number">{figure(measured.ndcg)}</td>
              {other ? (
                <>
                  <td className="number">{figure(other.ndcg)}</td>
                  <td className="number">{signed(other.ndcg - measured.ndcg)}</td>
                </>
              ) : (
                <>
                  <td className="number">{figure(measured.recall)}</td>
                  <td className="number">{figure(measured.reciprocalRank)}</td>
                </>
              )}
              <td className="number">
                {[measured, other].flatMap((each) => (each ? [each.of - each.judged] : [])).join(" / ")}
              </td>
              <td>
                <a href={why(measured)}>{other ? "Compare" : "Why?"}</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function signed(value: number): string {
  if (Math.abs(value) < 0.0005) return "0";
  return value < 0 ? `−${figure(-value)}` : `+${figure(value)}`;
}
