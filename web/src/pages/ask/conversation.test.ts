import { expect, test } from "vitest";
import type { AskResponse } from "../../api/types";
import { another, before, type Conversations, NO_CONVERSATIONS, turnsBefore, withTurn } from "./conversation";

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

test("a question that is asked again neither repeats its turn nor loses those after it", () => {
  const all = withTurn(withTurn(NO_CONVERSATIONS, "1", answered("A")), "2", answered("B"));

  expect(asked(all, "1")).toEqual(["B", "About B"]);
  expect(asked(withTurn(all, "1", answered("A2")), "3")).toEqual(["A2", "About A2", "B", "About B"]);
});

test("whoever goes back to an earlier conversation goes on with it", () => {
  const first = withTurn(NO_CONVERSATIONS, "1", answered("A"));
  const both = withTurn(another(first), "2", answered("B"));

  expect(asked({ ...both, current: 0 }, "3")).toEqual(["A", "About A"]);
  expect(another({ ...both, current: 0 }).current).toBe(2);
});
