/** What a receipt says, as its card shows it. */
import type { DocumentReceipt } from "../../api/types";

type Part = DocumentReceipt["not_read"][number];

/** Parts that are missing for the same reason. */
export interface Missing {
  parts: Part[];
  isPartly: boolean;
  why: string;
  example: string | null;
}

/** Put parts together that are missing for one reason; a part with an example stays alone. */
export function missing(parts: readonly Part[]): Missing[] {
  const found = new Map<string, Missing>();
  for (const part of parts) {
    const { why, example } = part;
    const key = JSON.stringify([why, isPartly(part), example ? part.part : null]);
    const same = found.get(key);
    if (same) same.parts.push(part);
    else found.set(key, { parts: [part], isPartly: isPartly(part), why, example });
  }
  return [...found.values()];
}

/** The number of a part that is a page of the original. */
export function pageOf(part: string): number | null {
  const number = /^page (\d+)$/.exec(part)?.[1];
  return number === undefined ? null : Number(number);
}

/** A page that is missing, or partly, or neighbouring pages that were read. */
export interface Pages {
  first: number;
  last: number;
  state: "read" | "partly" | "missing";
}

export const MAX_STRIP_PAGES = 200;

/**
 * The pages of a file in their order.
 *
 * Empty if there is nothing to tell apart, if there are too many to draw, or if the receipt does not name all that are
 * missing.
 */
export function strip({ counted, not_read, parts_not_read }: DocumentReceipt): Pages[] {
  const count = counted.find((line) => line.what === "pages")?.number ?? 0;
  if (count < 2 || count > MAX_STRIP_PAGES || not_read.length === 0 || parts_not_read > not_read.length)
    return [];
  const found: Pages[] = [];
  let next = 1;
  const read = (last: number) => {
    if (last >= next) found.push({ first: next, last, state: "read" });
  };
  for (const part of not_read) {
    const page = pageOf(part.part);
    if (page === null) continue;
    read(page - 1);
    found.push({ first: page, last: page, state: isPartly(part) ? "partly" : "missing" });
    next = page + 1;
  }
  read(count);
  return found;
}

/** The share of a line that is in the index; of words that were not all looked for, of those that were. */
export function share(line: DocumentReceipt["counted"][number], receipt: DocumentReceipt): number {
  const whole = line.what === "words" ? receipt.compared : line.number;
  return whole > 0 ? line.read / whole : 0;
}

/** In percent, and 100 only if all is there. */
export function inPercent(share: number): string {
  return `${share < 1 ? Math.min(99, Math.round(share * 100)) : 100} %`;
}

function isPartly(part: Part): boolean {
  return part.read > 0;
}
