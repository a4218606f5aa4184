/** What a sentence of an answer says about its sources: its markers and its verdict. */
import type { Sentence } from "../../api/types";

export type Verdict = "quoted" | "cited" | "unsupported";

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
