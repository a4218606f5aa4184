import { expect, test } from "vitest";
import type { AskResponse } from "../../api/types";
import {
  another,
  arriveAt,
  before,
  type Conversations,
  NO_CONVERSATIONS,
  turnsBefore,
  withTurn,
} from "./conversation";

function answered(question: string): AskResponse {
  return { question, answer: `About ${question}`, answerer: { model: null, quotes: true } } as AskResponse;
}

function asked(all: Conversations, entry: string): string[] {
  return before(turnsBefore(all, entry)).history.map((turn) => turn.content);
}

test("a follow-up sends the questions before it, with their answers", () => {
  const all = withTurn(withTurn(NO_CONVERSATIONS, "1", answered("A")), "2", answered("B"));

  expect(asked(all, "3")).toEqual(["A", "About A", "B", "About B"]);
});

test("a new conversation sends nothing of the one before", () => {
  const all = another(withTurn(NO_CONVERSATIONS, "1", answered("A")));

  expect(asked(all, "2")).toEqual([]);
  expect(asked(withTurn(all, "2", answered("B")), "3")).toEqual(["B", "About B"]);
});

test("a question that is asked again is sent with the conversation before it, and stays in its place", () => {
  const all = ["A", "B", "C"].reduce(
    (before, name) => withTurn(before, name, answered(name)),
    NO_CONVERSATIONS,
  );
  const waiting = withTurn(all, "B", null);

  expect(asked(waiting, "B")).toEqual(["A", "About A"]);
  expect(asked(withTurn(waiting, "B", answered("B2")), "new")).toEqual([
    ...["A", "About A"],
    ...["B2", "About B2"],
    ...["C", "About C"],
  ]);
});

test("whoever goes back to an earlier conversation goes on with it", () => {
  const first = withTurn(NO_CONVERSATIONS, "1", answered("A"));
  const both = withTurn(another(first), "2", answered("B"));

  expect(asked(arriveAt(both, "1"), "3")).toEqual(["A", "About A"]);
  expect(another(arriveAt(both, "1")).current).toBe(2);
});

test("Back and Forward over the start of a conversation show the conversation of each page", () => {
  const first = withTurn(arriveAt(NO_CONVERSATIONS, "asked"), "asked", answered("A"));
  const started = arriveAt(another(first), "start");

  const back = arriveAt(started, "asked");
  const forward = arriveAt(back, "start");

  expect([back.current, forward.current]).toEqual([0, 1]);
  expect(asked(forward, "new")).toEqual([]);
});

test("an answer that arrives late belongs to the conversation of its question", () => {
  const left = another(arriveAt(NO_CONVERSATIONS, "1"));

  expect(asked(withTurn(left, "1", answered("A")), "2")).toEqual([]);
});
