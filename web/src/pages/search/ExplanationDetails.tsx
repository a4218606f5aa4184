/** The figures and the passage behind the reason why a document is found, or not. */

import type { ReactNode } from "react";
import type { ExplainResponse } from "../../api/types";
import { figure, isKnown, percent } from "../../format";
import { describe } from "../../parts/InferredChip";
import { documentKey } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { Button, Hidden, Where } from "../../parts/shapes";
import { Facts, Table } from "../../parts/Table";
import { Excerpt } from "./Excerpt";
import { FILTERS } from "./explanation";

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
        <Table
          caption={<Hidden>What excludes the document</Hidden>}
          rows={filters}
          keyOf={(_, index) => index}
          columns={[
            ["What filters", (each) => FILTERS[each.of] ?? each.of],
            ["It asks for", (each) => describe(each.clause)],
            [
              "The document has",
              ({ attribute, value }) =>
                isKnown(value) ? `${attribute} = ${valueText(value)}` : `no ${attribute}`,
            ],
          ]}
        />
      )}
      {passage && (
        <figure className="passage">
          <figcaption className="row spread">
            <div>
              Its best passage for this question
              <Where of={passage} />
            </div>
            <Button kind="quiet" onClick={() => onOpen({ ...passage, source: uri })}>
              Open the original
            </Button>
          </figcaption>
          <Excerpt text={passage.content} />
        </figure>
      )}
      <details>
        <summary>Details</summary>
        <Facts rows={rows} />
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
