import { plain } from "../../parts/names";

const SHORT = 300;

/** The beginning of a passage; the rest opens. */
export function Excerpt({ text: written }: { text: string }) {
  const text = plain(written);
  const short = beginning(text);
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

/** The beginning of a text, up to the end of a word where there is one. */
function beginning(text: string): string {
  const characters = Array.from(text);
  if (characters.length <= SHORT) return text;
  const cut = characters.slice(0, SHORT).join("");
  return cut.replace(/\s+\S{0,40}$/, "");
}
