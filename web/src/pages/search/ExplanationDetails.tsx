/** The figures and the passage behind the reason why a document is found, or not. */

import type { ReactNode } from "react";
import type { ExplainResponse } from "../../api/types";
import { percent } from "../../format";
import { describe } from "../../parts/InferredChip";
import { documentKey, place } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { TableHead } from "../../parts/TableHead";
import { Excerpt } from "./Excerpt";
import { FILTERS } from "./explanation";
import { figure, isKnown } from "./ranking";

export function ExplanationDetails({
  explanation,
  onOpen,
}: {
  explanation: ExplainResponse;
  onOpen: (passage: Shown) => void;
}) {
  const { details, rank, candidates, document: uri } = explanation;
  const { passage, filters = [], relevance, min_relevance, score, min_score } = details;
  const rows: [string, ReactNode][] = [
    ["Document", documentKey(uri)],
    ["Status", details.status],
    ["Why it failed", details.failure],
    ["Rank", rank !== null && (candidates === null ? String(rank) : `${rank} of ${candidates} candidates`)],
    ["Results shown", `at most ${details.top_k}`],
    ["Relevance", isKnown(relevance) && percent(relevance) + wanted(min_relevance, percent)],
    ["Score", isKnown(score) && figure(score) + wanted(min_score, figure)],
  ];
  return (
    <>
      {rank !== null && candidates !== null && candidates > 0 && (
        <RankStrip rank={rank} candidates={candidates} topK={details.top_k} />
      )}
      {filters.length > 0 && (
        <table>
          <caption className="visually-hidden">What excludes the document</caption>
          <TableHead columns={["What filters", "It asks for", "The document has"]} />
          <tbody>
            {filters.map((each, index) => (
              <tr key={index}>
                <td>{FILTERS[each.of] ?? each.of}</td>
                <td dir="auto">{describe(each.clause)}</td>
                <td dir="auto">
                  {!isKnown(each.value)
                    ? `no ${each.attribute}`
                    : `${each.attribute} = ${valueText(each.value)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {passage && (
        <figure className="passage">
          <figcaption className="row spread">
            <span>
              Its best passage for this question
              {place(passage) && (
                <span className="small" dir="auto">
                  {" "}
                  {place(passage)}
                </span>
              )}
            </span>
            <button type="button" className="quiet" onClick={() => onOpen({ ...passage, source: uri })}>
              Open the original
            </button>
          </figcaption>
          <Excerpt text={passage.content} />
        </figure>
      )}
      <details>
        <summary>Details</summary>
        <table className="figures">
          <tbody>
            {rows
              .filter(([, value]) => value)
              .map(([name, value]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td dir="auto">{value}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </>
  );
}

/** Where a rank is among the candidates, and where the results end. */
function RankStrip({ rank, candidates, topK }: { rank: number; candidates: number; topK: number }) {
  const most = Math.max(candidates, topK, rank);
  return (
    <figure className="strip">
      <svg viewBox={`0 0 ${most} 10`} preserveAspectRatio="none" aria-hidden="true">
        <rect className="all" x={0} y={2} width={candidates} height={6} />
        <rect className="shown" x={0} y={2} width={Math.min(topK, candidates)} height={6} />
        <rect className="here" x={rank - 1} y={0} width={1} height={10} />
      </svg>
      <figcaption className="small">
        Rank {rank} of {candidates} candidates; the first {Math.min(topK, candidates)} are shown.
      </figcaption>
    </figure>
  );
}

function valueText(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(", ") : String(value);
}

function wanted(limit: number | null | undefined, text: (value: number) => string): string {
  return isKnown(limit) ? `, at least ${text(limit)} is wanted` : "";
}
