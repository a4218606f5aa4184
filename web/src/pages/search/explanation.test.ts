import { expect, test } from "vitest";
import type { ExplainResponse } from "../../api/types";
import { DEFAULTS, type Settings } from "../../settings";
import { steps, told } from "./explanation";

const explained = (
  values: Partial<ExplainResponse>,
  details: Partial<ExplainResponse["details"]> = {},
): ExplainResponse => ({
  document: "s3://documents/a.md",
  found: false,
  rank: null,
  candidates: null,
  reason: "found",
  text: "",
  ...values,
  details: {
    status: null,
    failure: null,
    filters: [],
    relevance: null,
    min_relevance: null,
    score: null,
    min_score: null,
    top_k: 5,
    passage: null,
    ...details,
  },
});

const clause = (of: string, value: unknown = "x") => ({ of, clause: {}, attribute: "corpus", value });
const settings: Settings = { ...DEFAULTS, question: "leave" };

test("a document that ranks below is shown by more results", () => {
  const [step] = steps(explained({ reason: "ranked below", rank: 37 }), settings);

  expect(step).toEqual({ label: "Show 40 results", settings: { ...settings, topK: 40 } });
});

test("no number of results shows a document at rank 120", () => {
  expect(steps(explained({ reason: "ranked below", rank: 120 }), settings)).toEqual([]);
});

test("a strict filter becomes a preference, or is left out", () => {
  const strict: Settings = { ...settings, facets: { year: [2024] }, mode: "strict", corpus: "people" };
  const found = steps(
    explained({ reason: "filtered out" }, { filters: [clause("metadata_filter"), clause("corpus_filter")] }),
    strict,
  );

  expect(found.map((step) => step.label)).toEqual([
    "Prefer what matches the filter",
    "Search without these filters",
  ]);
  expect(found[0]?.settings).toEqual({ ...strict, corpus: null, mode: "prefer" });
  expect(found[1]?.settings).toEqual(settings);
});

test("a collection that is not configured is searched alone", () => {
  const found = steps(
    explained({ reason: "filtered out" }, { filters: [clause("MULTI_CORPUS_METADATA", "legal")] }),
    settings,
  );

  expect(found).toEqual([
    { label: "Search only the collection legal", settings: { ...settings, corpus: "legal" } },
  ]);
});

test("a minimum relevance is left out", () => {
  const [step] = steps(explained({ reason: "below relevance" }), { ...settings, minRelevance: 0.5 });

  expect(step?.settings).toEqual(settings);
});

test("filters are explained in words, not as JSON", () => {
  const filters = [
    { of: "corpus_filter", clause: { corpus: "product" }, attribute: "corpus", value: "people" },
    { of: "version_filter", clause: { version: { $eq: 2026 } }, attribute: "version", value: null },
    { of: "metadata_filter", clause: { topic: { $in: ["api", "sdk"] } }, attribute: "topic", value: "leave" },
    {
      of: "MULTI_CORPUS_METADATA",
      clause: { corpus: { $in: ["a", "b"] } },
      attribute: "corpus",
      value: null,
    },
  ];

  expect(told(explained({ reason: "filtered out" }, { filters }), 0)).toBe(
    "Only documents of the collection product are searched; this one is in people. " +
      "Only documents of version 2026 are searched; this one has no version. " +
      "Only documents with topic = api or sdk are searched; this one has topic = leave. " +
      "Only the configured collections are searched: a or b; this one is in no collection.",
  );
});

test("a rank below the results names no setting", () => {
  expect(told(explained({ reason: "ranked below", rank: 12 }), 5)).toBe(
    "It has rank 12, and 5 results are shown.",
  );
});

test("what the API says of a failure has one full stop", () => {
  const text = "It could not be indexed: it has a password. Correct the cause, and upload it again.";

  expect(told(explained({ reason: "failed", text }), 0)).toBe(text);
});
