/** The figures and the passage behind the reason why a document is found, or not. */

import type { ReactNode } from "react";
import type { ExplainResponse } from "../../api/types";
import { figure, isKnown, percent } from "../../format";
import { useMessages } from "../../messages";
import { matches } from "../../parts/matches";
import { documentKey, plain } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { Button, Where } from "../../parts/shapes";
import { Facts } from "../../parts/Table";
import { isStatus, meaning } from "../../status";
import { Excerpt } from "./Excerpt";

interface Props {
  explanation: ExplainResponse;
  question: string;
  onOpen: (passage: Shown) => void;
}

export function ExplanationDetails({ explanation, question, onOpen }: Props) {
  const text = useMessages("search");
  const { details, rank, candidates, document: uri } = explanation;
  const { passage, status, relevance, min_relevance, score, min_score } = details;
  const wanted = (limit: number | null | undefined, say: (value: number) => string) =>
    isKnown(limit) ? text.wanted(say(limit)) : "";
  const rows: [string, ReactNode][] = [
    [text.document, documentKey(uri)],
    [text.status, status && (isStatus(status) ? meaning(status).label : status)],
    [text.whyFailed, details.failure && plain(details.failure)],
    [text.rankTitle, rank !== null && (candidates === null ? String(rank) : text.rankOf(rank, candidates))],
    [text.resultsShown, text.atMost(details.top_k)],
    [text.relevance, isKnown(relevance) && percent(relevance) + wanted(min_relevance, percent)],
    [text.score, isKnown(score) && figure(score) + wanted(min_score, figure)],
  ];
  return (
    <>
      {rank !== null && candidates !== null && candidates > 0 && (
        <RankStrip rank={rank} candidates={candidates} topK={details.top_k} />
      )}
      {passage && (
        <figure className="passage">
          <figcaption className="row spread">
            <div>
              {text.bestPassage}
              <Where of={passage} />
            </div>
            <Button kind="quiet" onClick={() => onOpen({ ...passage, source: uri })}>
              {text.openOriginal}
            </Button>
          </figcaption>
          <Excerpt text={passage.content} marked={matches(question, passage.content)} />
        </figure>
      )}
      <details>
        <summary>{text.details}</summary>
        <Facts rows={rows} />
      </details>
    </>
  );
}

/** Where a rank is among the candidates, and where the results end. */
function RankStrip({ rank, candidates, topK }: { rank: number; candidates: number; topK: number }) {
  const text = useMessages("search");
  const most = Math.max(candidates, topK, rank);
  const shown = Math.min(topK, candidates);
  return (
    <figure className="strip">
      <svg viewBox={`0 0 ${most} 10`} preserveAspectRatio="none" aria-hidden="true">
        <rect className="all" x={0} y={2} width={candidates} height={6} />
        <rect className="shown" x={0} y={2} width={shown} height={6} />
        <rect className="here" x={rank - 1} y={0} width={1} height={10} />
      </svg>
      <figcaption className="small">{text.strip(rank, candidates, shown)}</figcaption>
    </figure>
  );
}
