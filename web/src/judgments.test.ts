import { describe, expect, it } from "vitest";
import {
  type Change,
  type Judgment,
  nextQuestion,
  placeOf,
  questionId,
  questions,
  withChanges,
} from "./judgments";

const judgment = (given: Partial<Judgment>): Judgment => ({
  query_id: "q1",
  query: "How long is the leave?",
  document: "s3://b/leave.md",
  grade: 2,
  reference: null,
  at: "2026-01-01T00:00:00Z",
  by: "alice",
  ...given,
});
const change = (given: Partial<Change>): Change => ({
  query_id: "q1",
  query: "How long is the leave?",
  document: "s3://b/leave.md",
  grade: 3,
  reference: null,
  ...given,
});

describe("changes that are not stored yet", () => {
  it("replace, add and delete", () => {
    const stored = [judgment({}), judgment({ document: "s3://b/other.md" })];

    const shown = withChanges(stored, [
      change({}),
      change({ document: "s3://b/other.md", grade: null }),
      change({ document: "s3://b/new.md", grade: 0 }),
    ]);

    expect(shown.map(({ document, grade }) => [document, grade])).toEqual([
      ["s3://b/leave.md", 3],
      ["s3://b/new.md", 0],
    ]);
  });

  it("leave what is stored as it is once they are gone", () => {
    const stored = [judgment({})];
    withChanges(stored, [change({ grade: null })]);

    expect(withChanges(stored, [])).toEqual(stored);
  });
});

describe("questions", () => {
  it("have the grades of documents and the verdict of the answer", () => {
    const [question] = questions([
      judgment({}),
      judgment({ document: null, grade: 0, reference: "12 weeks" }),
    ]);

    expect(question?.grades.get("s3://b/leave.md")).toBe(2);
    expect(question?.answer).toEqual({ grade: 0, reference: "12 weeks" });
  });

  it("have the latest judgment if people disagree", () => {
    const [question] = questions([
      judgment({ by: "bob", grade: 0, at: "2026-02-01T00:00:00Z" }),
      judgment({ by: "alice", grade: 3, at: "2026-01-01T00:00:00Z" }),
    ]);

    expect(question?.grades.get("s3://b/leave.md")).toBe(0);
  });

  it("keep their identifier, however they are written", () => {
    const known = questions([judgment({ query_id: "imported-7" })]);

    expect(questionId("  how long is  the leave? ", known)).toBe("imported-7");
    expect(questionId("Another one", known)).toBe(questionId("another ONE", []));
    expect(questionId("Another one", [])).not.toBe(questionId("Another two", []));
  });

  it("follow each other in a circle", () => {
    const known = questions([
      judgment({ query_id: "1", query: "A" }),
      judgment({ query_id: "2", query: "B" }),
    ]);

    expect(["a", "b", ""].map((text) => nextQuestion(text, [], known))).toEqual(["B", "A", "A"]);
    expect(nextQuestion("A", [], known.slice(0, 1))).toBeNull();
    expect(nextQuestion("A", [], [])).toBeNull();
  });

  it("wait for their turn in the order in which they were written", () => {
    const known = questions([judgment({ query: "Z" })]);

    expect(["Z", "Y", "X"].map((text) => nextQuestion(text, ["Z", "Y", "X"], known))).toEqual([
      "Y",
      "X",
      "Y",
    ]);
  });
});

it("the place of an answer is not that of a document", () => {
  expect(placeOf({ query_id: "q", document: null })).not.toBe(placeOf({ query_id: "q", document: "null" }));
});
