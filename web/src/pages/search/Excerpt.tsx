import { useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { beginning, length, spans } from "../../parts/spans";
import type { Range } from "./matches";

const SHORT = 280;
/** How much is shown before the words that match. */
const LEAD = 60;

/** The part of a passage with most of the matching words, which are marked; the rest opens. */
export function Excerpt({ text, marked = [] }: { text: string; marked?: readonly Range[] }) {
  const messages = useMessages("search");
  const characters = Array.from(text);
  const start = startOf(characters, marked);
  const end = start + length(beginning(characters.slice(start).join(""), SHORT));
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

/** Where the part begins that has most matches: at a line or a word a little before the first of them. */
export function startOf(characters: readonly string[], marked: readonly Range[]): number {
  const worth = (from: number) =>
    marked
      .filter((each) => each.start >= from && each.end <= from + SHORT - LEAD)
      .reduce((sum, each) => sum + each.end - each.start, 0);
  const best = marked.reduce((found, { start }) => (worth(start) > worth(found) ? start : found), 0);
  if (best <= LEAD) return 0;
  const lead = characters.slice(best - LEAD, best);
  const line = lead.lastIndexOf("\n");
  const word = line >= 0 ? line : lead.findIndex((each) => /\s/.test(each));
  return best - LEAD + word + 1;
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
  const shown = (part: string) => {
    const text = plain(part).replace(/(^|\n)#{1,6} /g, "$1");
    return isShort ? text.replace(/([.!?:]?)\s*\n\s*\n\s*/g, (_, end) => (end ? `${end} ` : " · ")) : text;
  };
  return (
    <blockquote dir="auto">
      {before}
      {spans(text, marked).map((part, index) =>
        part.inside ? <mark key={index}>{plain(part.text)}</mark> : shown(part.text),
      )}
      {after}
    </blockquote>
  );
}
