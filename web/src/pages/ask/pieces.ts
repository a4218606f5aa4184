/** The citation markers of a sentence. */

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
