/** What moves between two rankings of one question. */
import type { RetrievedResult } from "../../api/types";
import { messages } from "../../messages";

export type Kind = "up" | "down" | "same" | "entered" | "left";

export interface Change {
  key: string;
  before: RetrievedResult | null;
  after: RetrievedResult | null;
  /** Ranks from 1; null where it is not among the results. */
  from: number | null;
  to: number | null;
  kind: Kind;
}

/** What is compared: a document; a passage that has none stands for itself. */
export function resultKey(result: RetrievedResult): string {
  return result.source ?? result.chunk_id ?? result.content;
}

/** Every result of both, in the order of the second ranking; those that left follow. */
export function changes(before: readonly RetrievedResult[], after: readonly RetrievedResult[]): Change[] {
  const found = after.map((result, index): Change => {
    const key = resultKey(result);
    const old = before.findIndex((each) => resultKey(each) === key);
    const from = old < 0 ? null : old + 1;
    const to = index + 1;
    return { key, before: before[old] ?? null, after: result, from, to, kind: kindOf(from, to) };
  });
  const left = before.flatMap((result, index): Change[] => {
    const key = resultKey(result);
    if (found.some((change) => change.key === key)) return [];
    return [{ key, before: result, after: null, from: index + 1, to: null, kind: "left" }];
  });
  return [...found, ...left];
}

function kindOf(from: number | null, to: number): Kind {
  if (from === null) return "entered";
  return to < from ? "up" : to > from ? "down" : "same";
}

/** What happened to one result: up 2, from 3 to 1. */
export function described({ kind, from, to }: Change): string {
  const text = messages("search");
  switch (kind) {
    case "up":
      return text.movedUp((from ?? 0) - (to ?? 0));
    case "down":
      return text.movedDown((to ?? 0) - (from ?? 0));
    case "same":
      return text.samePlace;
    default:
      return text[kind];
  }
}

const KINDS: readonly Kind[] = ["up", "down", "entered", "left", "same"];

/** One sentence: 3 moved up, 1 entered, 1 left. */
export function summary(all: readonly Change[]): string {
  const text = messages("search");
  if (all.length === 0) return text.neither;
  if (all.every((change) => change.kind === "same")) return text.sameRankings;
  const counts = KINDS.map((kind) => [kind, all.filter((each) => each.kind === kind).length] as const);
  return `${counts
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => text.changed[kind](count))
    .join(", ")}.`;
}
