/** Questions that somebody wrote down to judge, kept in this tab. */
const KEY = "ragstack.judge.waiting";

export function waitingQuestions(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as string[];
  } catch {
    return [];
  }
}

export function wait(questions: readonly string[]): void {
  sessionStorage.setItem(KEY, JSON.stringify([...new Set([...waitingQuestions(), ...questions])]));
}
