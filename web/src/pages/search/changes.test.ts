import { expect, test } from "vitest";
import type { RetrievedResult } from "../../api/types";
import { changes, described, summary } from "./changes";

const ranking = (...sources: string[]) => sources.map((source) => ({ source }) as RetrievedResult);

test("results move, enter and leave", () => {
  const all = changes(ranking("a", "b", "c", "d"), ranking("c", "a", "e", "d"));

  expect(all.map((each) => [each.key, each.from, each.to, described(each)])).toEqual([
    ["c", 3, 1, "up 2"],
    ["a", 1, 2, "down 1"],
    ["e", null, 3, "entered"],
    ["d", 4, 4, "same place"],
    ["b", 2, null, "left"],
  ]);
  expect(summary(all)).toBe("1 moved up, 1 moved down, 1 entered, 1 left, 1 stayed.");
});

test("equal rankings are the same", () => {
  expect(summary(changes(ranking("a", "b"), ranking("a", "b")))).toBe("Both rankings are the same.");
});

test("two empty rankings have no changes", () => {
  expect(summary(changes([], []))).toBe("Neither search found anything.");
});

test("passages without a document are told apart", () => {
  const passages = ["x", "y"].map(
    (content) => ({ source: null, chunk_id: null, content }) as RetrievedResult,
  );

  expect(changes(passages, [...passages].reverse()).map((each) => each.kind)).toEqual(["up", "down"]);
});
