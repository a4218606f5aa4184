/** A question while it is answered, and the conversation before it. */
import type { ApiError } from "../../api/client";
import type { AskEvent } from "../../api/stream";
import type { AskResponse, SourcesEvent } from "../../api/types";
import type { Before } from "../../settings";

export interface Asking {
  question: string;
  /** "unasked": people came back to a question that has no answer. */
  status: "searching" | "answering" | "done" | "stopped" | "failed" | "unasked";
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
  | { type: "unasked"; question: string }
  | { type: "show"; response: AskResponse }
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
    case "unasked":
      return { ...START, question: action.question, status: "unasked" };
    case "show":
      return shown(action.response);
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

/** An answer that was kept, as it was when it arrived. */
function shown(response: AskResponse): Asking {
  const found = { ...response, retrieval_ms: response.timings.retrieval_ms };
  return { ...START, question: response.question, status: "done", text: response.answer, found, response };
}

/** A finished question. */
export interface Turn {
  /** The entry of the browser's history that shows it. */
  entry: string;
  /** The conversation that it belongs to. */
  conversation: number;
  response: AskResponse;
}

/** The questions of this tab, oldest first, and the conversation that the next one belongs to. */
export interface Conversations {
  current: number;
  turns: readonly Turn[];
}

/** Where they are kept. */
export const CONVERSATIONS = "ask.conversations";

export const NO_CONVERSATIONS: Conversations = { current: 0, turns: [] };

const MAX_TURNS = 50;

/** The present conversation, without the turn of an entry that is asked again. */
export function turnsBefore({ current, turns }: Conversations, entry: string): Turn[] {
  return turns.filter((turn) => turn.conversation === current && turn.entry !== entry);
}

/** Add a finished question; one of the same entry is asked again, and takes its place. */
export function withTurn(all: Conversations, entry: string, response: AskResponse): Conversations {
  const turn = { entry, conversation: all.current, response };
  const isKnown = all.turns.some((each) => each.entry === entry);
  const turns = isKnown
    ? all.turns.map((each) => (each.entry === entry ? turn : each))
    : [...all.turns, turn];
  return { ...all, turns: turns.slice(-MAX_TURNS) };
}

/** Begin another conversation; the answers before it stay for *Back*. */
export function another(all: Conversations): Conversations {
  return { ...all, current: Math.max(all.current, ...all.turns.map((turn) => turn.conversation)) + 1 };
}

/** What a follow-up sends. Without a model, words of the question before would be added, also to a new subject. */
export function before(turns: readonly Turn[]): Before {
  const history = turns.flatMap(({ response }) => [
    { role: "user" as const, content: response.question },
    { role: "assistant" as const, content: response.answer },
  ]);
  const answerer = turns.at(-1)?.response.answerer;
  return { history, rewrite: answerer?.model != null && !answerer.quotes };
}
