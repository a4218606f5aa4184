/** One result: its passage, and how it came to its place. */

import type { ReactNode } from "react";
import type { RetrievedResult, RetrieveResponse } from "../../api/types";
import { count, figure, isKnown, percent } from "../../format";
import { documentKey, documentName } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { PagePicture } from "../../parts/PagePicture";
import { Badge, Button, Where } from "../../parts/shapes";
import { Facts } from "../../parts/Table";
import { Bar, partClass, StackedBar } from "./Bar";
import { Excerpt } from "./Excerpt";
import { type Part, parts, sliceName, slicePlaces } from "./ranking";

interface Props {
  id: string;
  result: RetrievedResult;
  rank: number;
  response: RetrieveResponse;
  /** Names of all parts of scores, in the order of their colours. */
  names: string[];
  /** The score of a full bar. */
  scale: number;
  onOpen: (passage: Shown) => void;
}

export function ResultCard({ id, result, rank, response, names, scale, onOpen }: Props) {
  const others = (result.passages ?? []).slice(1);
  const scored = parts(result);
  return (
    <article className="card result" id={id} tabIndex={-1} aria-label={`Result ${rank}`}>
      <header>
        <h3 dir="auto">
          <Badge kind="accent">{rank}</Badge> {documentName(result.source)}
        </h3>
        <Where of={result} />
      </header>
      <div className="body">
        <div className="stack">
          <Excerpt text={result.content} />
          <PagePicture link={result.picture} uri={result.source} onOpen={() => onOpen(result)} />
          {others.length > 0 && (
            <details>
              <summary>{count(others.length, "more passage")} of this document</summary>
              <ul className="stack">
                {others.map((passage, index) => (
                  <li key={index}>
                    <Where of={passage} />
                    <Excerpt text={passage.content} />
                  </li>
                ))}
              </ul>
            </details>
          )}
          <p>
            <Button onClick={() => onOpen(result)} aria-label={`Open the original of result ${rank}`}>
              Open the original
            </Button>
          </p>
        </div>
        <div className="why">
          <Ways result={result} rank={rank} response={response} scored={scored} names={names} scale={scale} />
          {result.ranking?.reason && <p className="small">{result.ranking.reason}.</p>}
          <details>
            <summary>All figures</summary>
            <Facts rows={figures(result, scored)} />
          </details>
        </div>
      </div>
    </article>
  );
}

interface WaysProps extends Omit<Props, "id" | "onOpen"> {
  scored: Part[];
}

/** A table of bars: what was measured, and the places in the merged searches. */
function Ways({ result, rank, response, scored, names, scale }: WaysProps) {
  const { ranking } = result;
  const before = ranking?.reranked_from ?? null;
  return (
    <table className="ways" aria-label={`How result ${rank} came to its place`}>
      <tbody>
        <Way
          name="Score"
          bar={<StackedBar parts={scored} scale={scale} names={names} />}
          value={figure(result.score)}
        >
          {scored.length > 1 && (
            <ul className="part-legend">
              {scored.map((part) => (
                <li key={part.name}>
                  <span className={`key ${partClass(part.name, names)}`} aria-hidden="true" /> {part.name}{" "}
                  {figure(part.value)}
                </li>
              ))}
            </ul>
          )}
        </Way>
        {isKnown(result.relevance) && (
          <Way
            name="Relevance"
            title="Probability that people would judge this document relevant"
            bar={<Bar share={result.relevance} />}
            value={percent(result.relevance)}
          />
        )}
        {Object.entries(ranking?.signals ?? {}).map(([name, value]) => (
          <Way
            key={name}
            {...(SIGNALS[name] ?? { name })}
            bar={<Bar share={value} />}
            value={figure(value)}
          />
        ))}
        {slicePlaces(result, response).map(({ name, rank: place, hits, trust }) => (
          <Way
            key={name}
            name={name}
            bar={
              <Bar share={place === null ? 0 : 1 - (place - 1) / Math.max(hits ?? 0, place)} kind="rank" />
            }
            value={place === null ? "not found" : `rank ${place}`}
          >
            {(trust !== null || (place !== null && hits !== null)) && (
              <p className="small">
                {[
                  place !== null && hits !== null && `of ${hits} hits`,
                  trust !== null && `trusted ${percent(trust)}`,
                ]
                  .filter(Boolean)
                  .join(", ")}
              </p>
            )}
          </Way>
        ))}
        {before !== null && (
          <Way name="Reranker" bar={<Moved from={before} to={rank} />} value={moved(before, rank)} />
        )}
      </tbody>
    </table>
  );
}

const SIGNALS: Record<string, { name: string; title: string }> = {
  vector: { name: "Vector", title: "How similar the meaning is" },
  lexical: { name: "Lexical", title: "How well the words match" },
  feedback: {
    name: "Feedback",
    title: "How similar the meaning is to the question and the first results together",
  },
};

interface WayProps {
  name: string;
  title?: string;
  bar: ReactNode;
  value: string;
  children?: ReactNode;
}

function Way({ name, title, bar, value, children }: WayProps) {
  return (
    <tr>
      <th scope="row" title={title}>
        {name}
      </th>
      <td className="drawn">
        {bar}
        {children}
      </td>
      <td className="number">{value}</td>
    </tr>
  );
}

function Moved({ from, to }: { from: number; to: number }) {
  const sign = to < from ? "▲" : to > from ? "▼" : "=";
  return (
    <span className="moved" aria-hidden="true">
      {from} → {to} {sign}
    </span>
  );
}

function moved(from: number, to: number): string {
  if (from === to) return "stayed";
  return to < from ? `up ${from - to}` : `down ${to - from}`;
}

function figures(result: RetrievedResult, scored: Part[]): [string, ReactNode][] {
  const { ranking, metadata } = result;
  return [
    ...scored.map((part): [string, string] => [`Score: ${part.name}`, part.value.toFixed(4)]),
    ["Score", result.score.toFixed(4)],
    ["Engine's score", ranking?.base_score.toFixed(4)],
    ["Boost", ranking && `× ${(ranking.boost ?? 1).toFixed(3)}`],
    ["Found by", ranking && ((ranking.found_by ?? []).map(sliceName).join(", ") || "–")],
    ...Object.entries(ranking?.ranks ?? {}).map(([name, rank]): [string, string] => [
      `Rank, ${sliceName(name).toLowerCase()}`,
      String(rank),
    ]),
    ["Passages among the candidates", result.passages_found],
    ...Object.entries(metadata)
      .filter(([name]) => !/^(x-amz-|amazon|_)/i.test(name))
      .map(([name, value]): [string, string] => [`Attribute ${name}`, shown(value)]),
    ["Document", result.source && documentKey(result.source)],
  ];
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}
