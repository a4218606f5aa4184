import { useMessages } from "../../messages";
import { bestPart, inOneLine, type Range, withoutSigns } from "../../parts/matches";
import { plain } from "../../parts/names";
import { spans } from "../../parts/spans";

const SHORT = 280;

/** The part of a passage with most of the matching words, which are marked; the rest opens. */
export function Excerpt({ text, marked = [] }: { text: string; marked?: readonly Range[] }) {
  const messages = useMessages("search");
  const characters = Array.from(text);
  const { start, end } = bestPart(text, marked, SHORT);
  if (start === 0 && end >= characters.length) return <Marked text={text} marked={marked} />;
  const inside = marked
    .filter((each) => each.start >= start && each.start < end)
    .map((each) => ({ start: each.start - start, end: Math.min(each.end, end) - start }));
  return (
    <details className="excerpt">
      <summary>
        <Marked
          text={characters.slice(start, end).join("")}
          marked={inside}
          before={start > 0 ? "… " : ""}
          after={end < characters.length ? " …" : ""}
          isShort
        />
        <span className="more closed">{messages.wholePassage}</span>
        <span className="more opened">{messages.lessPassage}</span>
      </summary>
      <Marked text={text} marked={marked} />
    </details>
  );
}

interface MarkedProps {
  text: string;
  marked: readonly Range[];
  before?: string;
  after?: string;
  /** Whether lines follow each other in one paragraph. */
  isShort?: boolean;
}

/** A text without the signs of Markdown headings. */
function Marked({ text, marked, before = "", after = "", isShort }: MarkedProps) {
  const shown = (part: string) => (isShort ? inOneLine : withoutSigns)(plain(part));
  return (
    <blockquote className={isShort ? "in-line" : undefined} dir="auto">
      {before}
      {spans(text, marked).map((part, index) =>
        part.inside ? <mark key={index}>{plain(part.text)}</mark> : shown(part.text),
      )}
      {after}
    </blockquote>
  );
}
