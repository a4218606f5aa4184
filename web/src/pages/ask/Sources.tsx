/** The passages that the answerer received; those that it cites come first. */

import type { Source } from "../../api/types";
import { useMessages } from "../../messages";
import { documentName, plain } from "../../parts/names";
import { PagePicture } from "../../parts/PagePicture";
import { Badge, Button, Hidden, Where } from "../../parts/shapes";
import { beginning, slice, spans } from "../../parts/spans";

interface Props {
  sources: Source[];
  /** Whether those that are not cited stand behind a line, although none is cited here. */
  isFolded?: boolean;
  lit: readonly number[];
  onLight: (source: number | null) => void;
  onOpen: (source: Source) => void;
}

export function Sources({ sources, isFolded = false, lit, onLight, onOpen }: Props) {
  const text = useMessages("ask");
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
        (cited.length > 0 || isFolded ? (
          <details>
            <summary className="small">{text.notCited(others.length)}</summary>
            <div className="sources">{others.map(card)}</div>
          </details>
        ) : (
          others.map(card)
        ))}
    </div>
  );
}

interface CardProps extends Omit<Props, "sources" | "isFolded" | "lit"> {
  source: Source;
  isLit: boolean;
}

function SourceCard({ source, isLit, onLight, onOpen }: CardProps) {
  const text = useMessages("ask");
  return (
    <article
      className={`card source ${isLit ? "lit" : ""} ${source.cited ? "cited" : ""}`}
      aria-label={text.source(source.number)}
      onMouseEnter={() => onLight(source.number)}
      onFocus={() => onLight(source.number)}
    >
      <h3 dir="auto">
        <Badge kind="accent">{source.number}</Badge> {documentName(source.source)}
      </h3>
      <Where of={source} />
      <Excerpt source={source} />
      <PagePicture link={source.picture} uri={source.source} onOpen={() => onOpen(source)} />
      <Button kind="quiet" onClick={() => onOpen(source)}>
        {(source.quoted ?? []).length > 0 ? text.openMarked : text.openOriginal}
        <Hidden>: {text.source(source.number)}</Hidden>
      </Button>
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
