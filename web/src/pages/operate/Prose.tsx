/** A text of the interface, which is in English. Between backticks stands what people type. */

import { plain } from "../../parts/names";
import { sentence } from "../../parts/states";

export function Prose({ text }: { text: string }) {
  const parts = sentence(plain(text)).split("`");
  return (
    <span lang="en" dir="auto">
      {parts.map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}
    </span>
  );
}
