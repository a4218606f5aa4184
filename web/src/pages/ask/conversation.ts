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

/** An entry of the browser's history that asks, with the answer to its question. */
export interface Turn {
  entry: string;
  /** The conversation that it belongs to. */
  conversation: number;
  /** null: nothing is asked there yet, or the answer is not here. */
  response: AskResponse | null;
}

export type Answered = Turn & { response: AskResponse };

/** What was visited in this tab, oldest first, and the conversation that the next question belongs to. */
export interface Conversations {
  current: number;
  turns: readonly Turn[];
}

/** Where those of the page that asks are kept. */
export const CONVERSATIONS = "ask.conversations";

export const NO_CONVERSATIONS: Conversations = { current: 0, turns: [] };

const MAX_TURNS = 50;

/** Continue the conversation of an entry; one that is new belongs to the present conversation. */
export function arriveAt(all: Conversations, entry: string): Conversations {
  const known = all.turns.find((turn) => turn.entry === entry);
  return known ? { ...all, current: known.conversation } : withTurn(all, entry, null);
}

/** The answers of the conversation before an entry: all of them if it is new. */
export function turnsBefore({ current, turns }: Conversations, entry: string): Answered[] {
  const at = turns.findIndex((turn) => turn.entry === entry);
  const conversation = turns[at]?.conversation ?? current;
  return turns
    .slice(0, at < 0 ? turns.length : at)
    .filter((turn) => turn.conversation === conversation)
    .filter((turn): turn is Answered => turn.response !== null);
}

/** Set the answer of an entry. An entry keeps its place and its conversation when its question is asked again. */
export function withTurn(all: Conversations, entry: string, response: AskResponse | null): Conversations {
  const isKnown = all.turns.some((turn) => turn.entry === entry);
  const turns = isKnown
    ? all.turns.map((turn) => (turn.entry === entry ? { ...turn, response } : turn))
    : [...all.turns, { entry, conversation: all.current, response }];
  return { ...all, turns: turns.slice(-MAX_TURNS) };
}

/** Begin another conversation; the answers before it stay for *Back*. */
export function another(all: Conversations): Conversations {
  return { ...all, current: Math.max(all.current, ...all.turns.map((turn) => turn.conversation)) + 1 };
}

/** What a follow-up sends. Without a model, words of the question before would be added, also to a new subject. */
export function before(turns: readonly Answered[]): Before {
  const history = turns.flatMap(({ response }) => [
    { role: "user" as const, content: response.question },
    { role: "assistant" as const, content: response.answer },
  ]);
  const answerer = turns.at(-1)?.response.answerer;
  return { history, rewrite: answerer?.model != null && !answerer.quotes };
}
