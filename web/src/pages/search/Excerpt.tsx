import { plain } from "../../parts/names";
import { beginning } from "../../parts/spans";

const SHORT = 300;

/** The beginning of a passage; the rest opens. */
export function Excerpt({ text: written }: { text: string }) {
  const text = plain(written);
  const short = beginning(text, SHORT);
  if (short === text) return <blockquote dir="auto">{text}</blockquote>;
  return (
    <details className="excerpt">
      <summary>
        <blockquote dir="auto">{short} …</blockquote>
        <span className="more" />
      </summary>
      <blockquote dir="auto">{text}</blockquote>
    </details>
  );
}
