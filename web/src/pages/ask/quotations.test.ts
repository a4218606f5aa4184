import { expect, test } from "vitest";
import type { AskResponse, Source } from "../../api/types";
import { check, edition, level, otherFigure, quotations } from "./quotations";

function source(number: number, name: string, metadata: Record<string, unknown>): Source {
  return { number, source: `s3://bucket/people/${name}`, metadata } as unknown as Source;
}

const OLD = source(1, "leave-2025.md", { version: "2025", current: false });
const NEW = source(2, "leave-2026.md", { version: "2026", current: true });
const OTHER = source(3, "travel.md", { version: "3" });

function answer(quoted: readonly [string, number][], members: Partial<AskResponse> = {}): AskResponse {
  return {
    question: "How long is parental leave?",
    searched_question: null,
    answerer: { provider: "extractive", model: null, quotes: true },
    sources: [OLD, NEW, OTHER],
    conflicts: [],
    sentences: quoted.map(([text, number]) => ({
      text,
      citations: [number],
      unsupported: false,
      quotations: [{ text, source: number }],
      support: null,
    })),
    ...members,
  } as unknown as AskResponse;
}

const BOTH: [string, number][] = [
  ["Sixteen weeks.", 1],
  ["Trains are paid.", 3],
  ["Twenty weeks.", 2],
];

function names(response: AskResponse): string[][] {
  return (quotations(response)?.groups ?? []).map((group) =>
    [group, ...group.older].map((each) => each.source.source?.split("/").pop() ?? ""),
  );
}

test("an earlier version stands behind the current one, at the place of the first", () => {
  expect(names(answer(BOTH))).toEqual([["leave-2026.md", "leave-2025.md"], ["travel.md"]]);
});

test("a version that the question names is not folded", () => {
  expect(names(answer(BOTH, { question: "How long was parental leave in 2025?" }))).toEqual([
    ["leave-2025.md"],
    ["travel.md"],
    ["leave-2026.md"],
  ]);
});

test("documents whose names differ in more than numbers are no versions of each other", () => {
  const rules = source(2, "leave-rules-2026.md", { version: "2026", current: true });

  expect(names(answer(BOTH, { sources: [OLD, rules, OTHER] }))).toHaveLength(3);
});

test("an earlier version says otherwise only if the figures are known to conflict", () => {
  const conflicts = [
    { figure: "sixteen weeks", citations: [1] },
    { figure: "twenty weeks", citations: [2] },
  ];
  const [group] = quotations(answer(BOTH))?.groups ?? [];
  const older = group?.older[0];
  if (!group || !older) throw new Error("not folded");

  expect(otherFigure({ conflicts }, group, older)).toEqual({ figure: "sixteen weeks", version: "2025" });
  expect(otherFigure({ conflicts: [] }, group, older)).toBeNull();
});

test("a version that the name of the file says is not repeated", () => {
  expect(edition(NEW)).toEqual({ isCurrent: true, version: null });
  expect(edition(OTHER)).toEqual({ isCurrent: false, version: "3" });
});

test("the verdict counts quotations and documents, or what is supported of other sentences", () => {
  const cited = { text: "a", citations: [1], unsupported: false, quotations: [], support: null };
  const model = { provider: "bedrock", model: "m", quotes: false };
  const sentences = [cited, { ...cited, unsupported: true, citations: [] }, { ...cited, support: "partly" }];

  expect(check(answer(BOTH))).toEqual({ kind: "quoted", supported: 3, all: 3, documents: 3 });
  expect(check(answer([], { answerer: model, sentences } as unknown as Partial<AskResponse>))).toEqual({
    kind: "cited",
    supported: 1,
    all: 3,
    documents: 1,
  });
  expect(check(answer([]))).toBeNull();
});

test("bars follow the thresholds", () => {
  expect([0.95, 0.8, 0.79, 0.6, 0.59].map(level)).toEqual([3, 3, 2, 2, 1]);
});
