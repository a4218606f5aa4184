/** How a result came to its place: bars, and all figures. */

import type { ReactNode } from "react";
import type { RetrievedResult, RetrieveResponse } from "../../api/types";
import { figure, isKnown, percent } from "../../format";
import { type Messages, messages, useMessages } from "../../messages";
import { documentKey, plain } from "../../parts/names";
import { Facts } from "../../parts/Table";
import { Bar, partClass, StackedBar } from "./Bar";
import { type Part, parts, sliceName, slicePlaces, within } from "./ranking";

interface Props {
  result: RetrievedResult;
  rank: number;
  response: RetrieveResponse;
  /** Names of all parts of scores, in the order of their colours. */
  names: string[];
  /** The score of a full bar. */
  scale: number;
}

export function Why(props: Props) {
  const text = useMessages("search");
  const { result } = props;
  const scored = parts(result);
  return (
    <div className="why">
      {result.ranking?.reason && <p className="small">{plain(result.ranking.reason)}.</p>}
      <Ways {...props} scored={scored} />
      <details>
        <summary>{text.allFigures}</summary>
        <Facts rows={figures(result, scored)} />
      </details>
    </div>
  );
}

/** A table of bars: what was measured, and the places in the merged searches. */
function Ways({ result, rank, response, scored, names, scale }: Props & { scored: Part[] }) {
  const text = useMessages("search");
  const { ranking } = result;
  const before = ranking?.reranked_from ?? null;
  return (
    <table className="ways" aria-label={text.howPlaced(rank)}>
      <tbody>
        <Way
          name={text.score}
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
            name={text.relevance}
            title={text.relevanceMeaning}
            bar={<Bar share={result.relevance} />}
            value={percent(result.relevance)}
          />
        )}
        {Object.entries(ranking?.signals ?? {}).map(([name, value]) => (
          <Way
            key={name}
            {...(text.signals[name] ?? { name })}
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
            value={place === null ? text.notFound : text.rank(place)}
          >
            {(trust !== null || (place !== null && hits !== null)) && (
              <p className="small">
                {[
                  place !== null && hits !== null && text.ofHits(hits),
                  trust !== null && text.trusted(percent(trust)),
                ]
                  .filter(Boolean)
                  .join(", ")}
              </p>
            )}
          </Way>
        ))}
        {before !== null && (
          <Way
            name={text.reranker}
            bar={<Moved from={before} to={rank} />}
            value={moved(text, before, rank)}
          />
        )}
      </tbody>
    </table>
  );
}

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

function moved(text: Messages["search"], from: number, to: number): string {
  if (from === to) return text.stayed;
  return to < from ? text.movedUp(from - to) : text.movedDown(to - from);
}

function figures(result: RetrievedResult, scored: Part[]): [string, ReactNode][] {
  const text = messages("search");
  const { ranking } = result;
  return [
    ...scored.map((part): [string, string] => [text.partOfScore(part.name), part.value.toFixed(4)]),
    [text.score, result.score.toFixed(4)],
    [text.baseScore, ranking?.base_score.toFixed(4)],
    [text.boost, ranking && `× ${(ranking.boost ?? 1).toFixed(3)}`],
    [text.foundBy, ranking && ((ranking.found_by ?? []).map(sliceName).join(", ") || "–")],
    ...Object.entries(ranking?.ranks ?? {}).map(([name, rank]): [string, string] => [
      text.rankIn(within(sliceName(name))),
      String(rank),
    ]),
    [text.passagesFound, result.passages_found],
    [text.document, result.source && documentKey(result.source)],
  ];
}
