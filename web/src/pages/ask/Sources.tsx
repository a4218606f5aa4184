/** The passages that the answerer received; those that it cites come first. */

import type { Source } from "../../api/types";
import { percent } from "../../format";
import { documentName, place, plain } from "../../parts/names";
import { beginning, slice, spans } from "../../parts/spans";

interface Props {
  sources: Source[];
  lit: readonly number[];
  onLight: (source: number | null) => void;
  onOpen: (source: Source) => void;
}

export function Sources({ sources, lit, onLight, onOpen }: Props) {
  const cited = sources.filter((source) => source.cited);
  const others = sources.filter((source) => !source.cited);
  const card = (source: Source) => (
    <SourceCard
      key={source.number}
      source={source}
      isLit={lit.includes(source.number)}
      onLight={onLight}
      onOpen={onOpen}
    />
  );
  return (
    <div className="sources">
      {cited.map(card)}
      {others.length > 0 &&
        (cited.length > 0 ? (
          <details>
            <summary>
              {others.length} more {others.length === 1 ? "passage" : "passages"}, not cited
            </summary>
            <div className="sources">{others.map(card)}</div>
          </details>
        ) : (
          others.map(card)
        ))}
    </div>
  );
}

interface CardProps {
  source: Source;
  isLit: boolean;
  onLight: (source: number | null) => void;
  onOpen: (source: Source) => void;
}

function SourceCard({ source, isLit, onLight, onOpen }: CardProps) {
  const where = place(source);
  return (
    <article
      className={`card source ${isLit ? "lit" : ""} ${source.cited ? "cited" : ""}`}
      id={`source-${source.number}`}
      aria-label={`Source ${source.number}`}
      onMouseEnter={() => onLight(source.number)}
      onFocus={() => onLight(source.number)}
    >
      <div className="row spread">
        <h3 dir="auto">
          <span className="badge accent">{source.number}</span> {documentName(source.source)}
        </h3>
        {source.relevance !== null && source.relevance !== undefined && (
          <span className="small" title="Probability that people would judge this document relevant">
            {percent(source.relevance)} relevant
          </span>
        )}
      </div>
      {where && (
        <p className="small" dir="auto">
          {where}
        </p>
      )}
      <Excerpt source={source} />
      <button
        type="button"
        onClick={() => onOpen(source)}
        aria-label={`Open the original of source ${source.number}`}
      >
        Open the original
      </button>
    </article>
  );
}

const SHORT = 360;

function Excerpt({ source }: { source: Source }) {
  const quoted = source.quoted ?? [];
  const [first] = quoted;
  if (!first) {
    const short = beginning(source.content, SHORT);
    return (
      <blockquote dir="auto">
        {plain(short)}
        {short !== source.content && " …"}
      </blockquote>
    );
  }
  const start = Math.min(...quoted.map((each) => each.context?.start ?? each.start));
  const end = Math.max(...quoted.map((each) => each.context?.end ?? each.end));
  const content = slice(source.content, start, end);
  const ranges = quoted.map((each) => ({ start: each.start - start, end: each.end - start }));
  return (
    <blockquote dir="auto" className="around">
      {spans(content, ranges).map((part, index) =>
        part.inside ? <mark key={index}>{plain(part.text)}</mark> : plain(part.text),
      )}
    </blockquote>
  );
}
