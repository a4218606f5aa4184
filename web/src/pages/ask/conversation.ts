/** A question while it is answered, and the conversation before it. */
import type { ApiError } from "../../api/client";
import type { AskEvent } from "../../api/stream";
import type { AskResponse, SourcesEvent } from "../../api/types";
import type { Before } from "../../settings";

export interface Asking {
  question: string;
  status: "searching" | "answering" | "done" | "stopped" | "failed";
  /** The text so far. */
  text: string;
  /** Where finished sentences are in the text, with what they cite. */
  cited: { start: number; end: number; citations: number[] }[];
  found: SourcesEvent | null;
  response: AskResponse | null;
  error: ApiError | null;
}

export type Action =
  | { type: "start"; question: string }
  | { type: "event"; event: AskEvent }
  | { type: "stopped" }
  | { type: "failed"; error: ApiError };

export const START: Asking = {
  question: "",
  status: "searching",
  text: "",
  cited: [],
  found: null,
  response: null,
  error: null,
};

export function reduce(asking: Asking, action: Action): Asking {
  switch (action.type) {
    case "start":
      return { ...START, question: action.question };
    case "stopped":
      return asking.status === "done" ? asking : { ...asking, status: "stopped" };
    case "failed":
      return { ...asking, status: "failed", error: action.error };
    case "event":
      return receive(asking, action.event);
  }
}

function receive(asking: Asking, event: AskEvent): Asking {
  switch (event.name) {
    case "sources":
      return { ...asking, status: "answering", found: event.data };
    case "token":
      return { ...asking, text: asking.text + event.data.text };
    case "citation":
      return { ...asking, cited: [...asking.cited, event.data] };
    case "support":
      return asking; // "done" has the verdicts too
    case "done":
      return { ...asking, status: "done", response: event.data, text: event.data.answer };
  }
}

const KEY = "ragstack.conversation";
const MAX_TURNS = 50;

/** Finished questions of this tab, oldest first. */
export function savedTurns(): AskResponse[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as AskResponse[];
  } catch {
    return [];
  }
}

export function saveTurns(turns: AskResponse[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(turns.slice(-MAX_TURNS)));
  } catch {
    // The tab's storage is full: the conversation is lost with a reload, and nothing else.
  }
}

/** What a follow-up sends. Without a model, words of the question before would be added, also to a new subject. */
export function conversation(turns: AskResponse[]): Before {
  const history = turns.flatMap((turn) => [
    { role: "user" as const, content: turn.question },
    { role: "assistant" as const, content: turn.answer },
  ]);
  return { history, rewrite: turns.at(-1)?.answerer.model != null && !turns.at(-1)?.answerer.quotes };
}
