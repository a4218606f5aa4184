import { expect, test } from "vitest";
import type { AskResponse, ConversationTurn } from "../../api/types";
import {
  another,
  arriveAt,
  before,
  begin,
  type Conversations,
  keptTurn,
  turnsBefore,
  withKept,
  withTurn,
} from "./conversation";

function answered(question: string): AskResponse {
  return { question, answer: `About ${question}`, answerer: { model: null, quotes: true } } as AskResponse;
}

function asked(all: Conversations, entry: string): string[] {
  return before(turnsBefore(all, entry)).history.map((turn) => turn.content);
}

test("a follow-up sends the questions before it, with their answers", () => {
  const all = withTurn(withTurn(begin(), "1", { response: answered("A") }), "2", { response: answered("B") });

  expect(asked(all, "3")).toEqual(["A", "About A", "B", "About B"]);
});

test("a new conversation sends nothing of the one before", () => {
  const all = another(withTurn(begin(), "1", { response: answered("A") }));

  expect(asked(all, "2")).toEqual([]);
  expect(asked(withTurn(all, "2", { response: answered("B") }), "3")).toEqual(["B", "About B"]);
});

test("a question that is asked again is sent with the conversation before it, and stays in its place", () => {
  const all = ["A", "B", "C"].reduce(
    (before, name) => withTurn(before, name, { response: answered(name) }),
    begin(),
  );
  const waiting = withTurn(all, "B", { response: null });

  expect(asked(waiting, "B")).toEqual(["A", "About A"]);
  expect(asked(withTurn(waiting, "B", { response: answered("B2") }), "new")).toEqual([
    ...["A", "About A"],
    ...["B2", "About B2"],
    ...["C", "About C"],
  ]);
});

test("whoever goes back to an earlier conversation goes on with it", () => {
  const first = withTurn(begin(), "1", { response: answered("A") });
  const both = withTurn(another(first), "2", { response: answered("B") });

  expect(asked(arriveAt(both, "1"), "3")).toEqual(["A", "About A"]);
  expect(arriveAt(both, "1").current).toBe(first.current);
});

test("Back and Forward over the start of a conversation show the conversation of each page", () => {
  const first = withTurn(arriveAt(begin(), "asked"), "asked", { response: answered("A") });
  const started = arriveAt(another(first), "start");

  const back = arriveAt(started, "asked");
  const forward = arriveAt(back, "start");

  expect(back.current).toBe(first.current);
  expect(forward.current).toBe(started.current);
  expect(forward.current).not.toBe(back.current);
  expect(asked(forward, "new")).toEqual([]);
});

test("an answer that arrives late belongs to the conversation of its question", () => {
  const left = another(arriveAt(begin(), "1"));

  expect(asked(withTurn(left, "1", { response: answered("A") }), "2")).toEqual([]);
});

function kept(entry: string, members: Partial<ConversationTurn> = {}): ConversationTurn {
  const response = { ...answered(entry), conversation: { entry } };
  return {
    entry,
    question: entry,
    asked: {},
    response,
    withheld: null,
    changed: [],
    ...members,
  } as ConversationTurn;
}

test("a conversation that is opened goes on with what the service keeps", () => {
  const all = withKept(begin(), "x", [keptTurn("x", kept("A")), keptTurn("x", kept("B"))]);

  expect(asked(all, "new")).toEqual(["A", "About A", "B", "About B"]);
});

test("a turn that this tab has too is not sent twice, and not at all once it is withheld", () => {
  const own = { ...begin(), current: "x" };
  const response = { ...answered("A"), conversation: { entry: "A" } } as AskResponse;
  const both = withKept(withTurn(own, "1", { response }), "x", [keptTurn("x", kept("A"))]);
  const withheld = withKept(both, "x", [keptTurn("x", kept("A", { response: null, withheld: "rights" }))]);

  expect(asked(both, "new")).toEqual(["A", "About A"]);
  expect(asked(withheld, "new")).toEqual([]);
});
