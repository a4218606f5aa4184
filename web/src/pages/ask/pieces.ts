/** An answer in pieces: sentences, the text between them, and the markers of their sources. */
import type { Sentence } from "../../api/types";

export type Verdict = "quoted" | "cited" | "unsupported";

export interface Piece {
  text: string;
  /** Index of the sentence; null for text between sentences. */
  sentence: number | null;
}

/** Cut a text at its sentences. Offsets count characters as the interface does, not UTF-16 units. */
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

/** Split a sentence at its citation markers, such as [2]; a number is a marker only if the sentence cites it. */
export function markers(text: string, citations: readonly number[]): (string | number)[] {
  return text
    .split(/(\[\d+\])/)
    .map((part) => {
      const number = Number(/^\[(\d+)\]$/.exec(part)?.[1]);
      return citations.includes(number) ? number : part;
    })
    .filter((part) => part !== "");
}

/** What was verified of a sentence; null for one that claims nothing, such as "The documents do not say". */
export function verdict(sentence: Sentence): Verdict | null {
  if (sentence.unsupported) return "unsupported";
  if (sentence.citations.length === 0) return null;
  return sentence.quotations?.some((quotation) => quotation.source !== null) ? "quoted" : "cited";
}

/** Cut out parts of a text by offsets in characters. */
export function spans(
  text: string,
  ranges: readonly { start: number; end: number }[],
): { text: string; inside: boolean }[] {
  const sorted = [...ranges].sort((a, b) => a.start - b.start);
  return cut(text, sorted).map((piece) => ({ text: piece.text, inside: piece.sentence !== null }));
}
