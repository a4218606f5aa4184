/** Texts cut at offsets. They count characters as the interface does, not UTF-16 units. */

/** The characters from start to end. */
export function slice(text: string, start: number, end: number): string {
  return Array.from(text).slice(start, end).join("");
}

/** The number of characters. */
export function length(text: string): number {
  return Array.from(text).length;
}

/** The beginning of a text, up to the end of a word where there is one; the whole text if it is short. */
export function beginning(text: string, limit: number): string {
  const short = slice(text, 0, limit);
  return short === text ? text : short.replace(/\s+\S{0,40}$/, "");
}

interface Piece {
  text: string;
  /** Index of the sentence; null for text between sentences. */
  sentence: number | null;
}

/** Cut a text at its sentences. */
export function cut(text: string, sentences: readonly { start: number; end: number }[]): Piece[] {
  const characters = Array.from(text);
  const pieces: Piece[] = [];
  let at = 0;
  const add = (end: number, sentence: number | null) => {
    if (end > at) pieces.push({ text: characters.slice(at, end).join(""), sentence });
    at = Math.max(at, end);
  };
  sentences.forEach(({ start, end }, index) => {
    add(Math.min(start, characters.length), null);
    add(Math.min(end, characters.length), index);
  });
  add(characters.length, null);
  return pieces;
}

/** Cut out parts of a text by offsets in characters. */
export function spans(
  text: string,
  ranges: readonly { start: number; end: number }[],
): { text: string; inside: boolean }[] {
  const sorted = [...ranges].sort((a, b) => a.start - b.start);
  return cut(text, sorted).map((piece) => ({ text: piece.text, inside: piece.sentence !== null }));
}
