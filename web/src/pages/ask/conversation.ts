/** A question while it is answered, and the conversation before it. */
import type { ApiError } from "../../api/client";
import type { AskEvent } from "../../api/stream";
import type { AskRequest, AskResponse, ConversationTurn, SourcesEvent } from "../../api/types";
import { newUuid } from "../../kept";
import { type Before, fromAsk, toParams } from "../../settings";

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
export function shown(response: AskResponse): Asking {
  const found = { ...response, retrieval_ms: response.timings.retrieval_ms };
  return { ...START, question: response.question, status: "done", text: response.answer, found, response };
}

/** An entry of the browser's history that asks, or a turn that the service keeps, with the answer to its question. */
export interface Turn {
  entry: string;
  /** The conversation that it belongs to. */
  conversation: string;
  question: string;
  /** What it was asked with, as an address has it. */
  asked: string;
  /** null: nothing is asked there yet, or the answer is not here. */
  response: AskResponse | null;
  /** Why the service gives no answer to who asks now. */
  withheld?: ConversationTurn["withheld"];
  /** Documents of the answer that have changed since. */
  changed?: readonly string[];
}

/** What was visited in this tab, oldest first, and the conversation that the next question belongs to. */
export interface Conversations {
  current: string;
  turns: readonly Turn[];
}

/** Where those of the page that asks are kept. */
export const CONVERSATIONS = "ask.conversations";

/** No turn, and a conversation for the first one. */
export function begin(): Conversations {
  return { current: newUuid(), turns: [] };
}

const MAX_TURNS = 100;

/** Continue the conversation of an entry; one that is new belongs to the present conversation. */
export function arriveAt(all: Conversations, entry: string): Conversations {
  const known = all.turns.find((turn) => turn.entry === entry);
  return known ? { ...all, current: known.conversation } : withTurn(all, entry, {});
}

/** The turns of the conversation before an entry: all of them if it is new. */
export function turnsBefore({ current, turns }: Conversations, entry: string): Turn[] {
  const at = turns.findIndex((turn) => turn.entry === entry);
  const conversation = turns[at]?.conversation ?? current;
  const found = new Map<string, Turn>();
  for (const turn of turns.slice(0, at < 0 ? turns.length : at)) {
    // What the service gave counts: it may withhold what this tab has seen.
    if (turn.conversation === conversation && (turn.response || turn.withheld)) found.set(nameOf(turn), turn);
  }
  return [...found.values()];
}

/** The same for an answer that was given here and for the same one as the service keeps it. */
function nameOf({ entry, response }: Turn): string {
  return response?.conversation?.entry ? keptEntry(response.conversation.entry) : entry;
}

function keptEntry(entry: string): string {
  return `kept ${entry}`;
}

/** A turn that the service keeps. */
export function keptTurn(conversation: string, turn: ConversationTurn): Turn {
  return {
    entry: keptEntry(turn.entry),
    conversation,
    question: turn.question,
    asked: toParams(fromAsk(turn.question, turn.asked as Partial<AskRequest>)).toString(),
    response: turn.response as AskResponse | null,
    withheld: turn.withheld,
    changed: turn.changed,
  };
}

/** Continue a conversation that the service keeps. */
export function withKept(all: Conversations, conversation: string, kept: readonly Turn[]): Conversations {
  const entries = new Set(kept.map((turn) => turn.entry));
  const fresh = new Map(kept.map((turn) => [turn.entry, turn]));
  const turns = all.turns.flatMap((turn) => {
    if (turn.conversation !== conversation || !turn.entry.startsWith(keptEntry(""))) return [turn];
    return entries.delete(turn.entry) ? [fresh.get(turn.entry) ?? turn] : [];
  });
  return {
    current: conversation,
    turns: [...turns, ...kept.filter((turn) => entries.has(turn.entry))].slice(-MAX_TURNS),
  };
}

/** Set what is known of an entry. It keeps its place and its conversation when its question is asked again. */
export function withTurn(
  all: Conversations,
  entry: string,
  known: Partial<Pick<Turn, "question" | "asked" | "response">>,
): Conversations {
  const before = all.turns.find((turn) => turn.entry === entry);
  const turn = {
    entry,
    conversation: all.current,
    question: "",
    asked: "",
    response: null,
    ...before,
    ...known,
  };
  const turns = before ? all.turns.map((each) => (each.entry === entry ? turn : each)) : [...all.turns, turn];
  return { ...all, turns: turns.slice(-MAX_TURNS) };
}

/** Begin another conversation; the answers before it stay for *Back*. */
export function another(all: Conversations): Conversations {
  return { ...all, current: newUuid() };
}

/** What a follow-up sends. Without a model, words of the question before would be added, also to a new subject. */
export function before(turns: readonly Turn[]): Before {
  const responses = turns.flatMap(({ response }) => response ?? []);
  const history = responses.flatMap((response) => [
    { role: "user" as const, content: response.question },
    { role: "assistant" as const, content: response.answer },
  ]);
  const answerer = responses.at(-1)?.answerer;
  return { history, rewrite: answerer?.model != null && !answerer.quotes };
}
