/** Questions that somebody wrote down to judge, kept in this tab. */
import type { Kept } from "../../kept";

const NAME = "judge.waiting";

export function waitingQuestions(kept: Kept): string[] {
  return kept.read<string[]>(NAME, []);
}

export function wait(kept: Kept, questions: readonly string[]): void {
  kept.write(NAME, [...new Set([...waitingQuestions(kept), ...questions])]);
}
