import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { DEFAULTS, type Settings } from "../settings";
import { asCommand, asCurl, asPython, python } from "./commands";

const HARD = { ...DEFAULTS, question: `It's "$HOME" \`id\` \\ 50 %`, corpus: "a'b", infer: false };

const SEARCH: Settings = {
  ...DEFAULTS,
  question: "What's due?",
  corpus: "all",
  facets: { current: [true] },
  mode: "strict",
  infer: false,
  reranker: "none",
  topK: 40,
  minRelevance: 0.2,
};

function argumentsOf(command: string): string[] {
  const script = command.replace(/^\S+/, "printf '%s\\0'");
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test("a shell passes the question on as it was asked", () => {
  expect(argumentsOf(asCommand("ask", HARD))).toEqual([
    "ask",
    HARD.question,
    "--corpus",
    "a'b",
    "--no-infer",
  ]);
  expect(JSON.parse(argumentsOf(asCurl("ask", HARD, "http://localhost", "none")).at(-1) ?? "")).toEqual({
    question: HARD.question,
    corpus_filter: "a'b",
    infer_filter: false,
  });
});

test("a shell runs nothing that is in an address", () => {
  const copied = asCommand("search", { ...DEFAULTS, question: "x", corpus: "none; echo '$(id)'" });

  expect(argumentsOf(copied)).toEqual(["query", "x", "--corpus", "none; echo '$(id)'", "--explain"]);
});

test("Python gets Python's literals", () => {
  expect(python({ a: [true, null, 1.5], "b'": "c\n" })).toBe(`{"a": [True, None, 1.5], "b'": "c\\n"}`);
  expect(asPython("ask", HARD)).toContain("infer_filter=False");
});

test("a search is copied with all its settings", () => {
  expect(argumentsOf(asCommand("search", SEARCH)).slice(2).join(" ")).toBe(
    '--corpus all --filter {"current":{"$in":[true]}} --filter-mode strict --no-infer --rerank none --top-k 40' +
      " --min-relevance 0.2 --explain",
  );
  expect(asCurl("search", SEARCH, "http://localhost", "none")).toContain("http://localhost/api/retrieve");
  expect(asPython("search", SEARCH)).toContain("top_k=40, min_relevance=0.2, explain=True).results");
});

test("a question is copied without what only searches know", () => {
  expect(asCommand("ask", SEARCH)).not.toMatch(/explain|relevance/);
  expect(asPython("ask", SEARCH)).not.toMatch(/explain|relevance/);
});
