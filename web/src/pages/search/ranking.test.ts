import { expect, test } from "vitest";
import type { RetrievedResult, RetrieveResponse, SliceReport } from "../../api/types";
import { groups, missingParts, parts, reportName, slicePlaces, whereName } from "./ranking";

const report = (values: Partial<SliceReport>): SliceReport => ({
  backend: null,
  corpus: null,
  slice: null,
  status: "ok",
  milliseconds: 10,
  hits: 5,
  error: null,
  trust: null,
  reason: null,
  ...values,
});

const result = (score: number, ranking: Partial<RetrievedResult["ranking"]>) =>
  ({ score, ranking: { base_score: score, boost: 1, score, ...ranking } }) as RetrievedResult;

const response = (...slices: SliceReport[]) => ({ slices, results: [] }) as unknown as RetrieveResponse;

const sum = (found: RetrievedResult) => parts(found).reduce((total, part) => total + part.value, 0);

test("contributions add up to the score, largest first", () => {
  const found = result(0.814, { contributions: { phrase: 0, vector: 0.28, metadata: 0.43, frequency: 0.1 } });

  expect(parts(found).map((part) => part.name)).toEqual(["metadata", "vector", "frequency", "other"]);
  expect(sum(found)).toBeCloseTo(0.814);
});

test("a boosted score has the boost as a part", () => {
  const found = result(1.2, { base_score: 0.8, boost: 1.5 });

  expect(parts(found).map((part) => part.name)).toEqual(["engine's score", "boost of the filter"]);
  expect(sum(found)).toBeCloseTo(1.2);
});

test("a score without a boost is the engine's own", () => {
  expect(parts(result(0.5, {}))).toEqual([{ name: "engine's score", value: 0.5 }]);
});

test("a result has a place in each merged search", () => {
  const found = result(0.5, { ranks: { unfiltered: 3 }, found_by: ["unfiltered", "people"] });
  const slices = [
    report({ corpus: "people", slice: "filtered", trust: 0.02, hits: 0 }),
    report({ corpus: "people", slice: "unfiltered", hits: 17 }),
    report({ corpus: "product", slice: "inferred", trust: 0.9 }),
  ];

  expect(slicePlaces(found, response(...slices))).toEqual([
    { name: "Without a filter", rank: 3, hits: 17, trust: null },
    { name: "With the filter", rank: null, hits: 0, trust: 0.02 },
  ]);
});

test("a single search has no merged places", () => {
  expect(slicePlaces(result(0.5, {}), response(report({ slice: "unfiltered" })))).toEqual([]);
});

test("searches with the same filter in several collections are a group", () => {
  const reason = "The question names topic";
  const [filtered, unfiltered] = groups([
    report({ corpus: "people", slice: "filtered", reason }),
    report({ corpus: "people", slice: "unfiltered" }),
    report({ corpus: "all", slice: "filtered", reason }),
  ]);

  expect(filtered).toMatchObject({ name: "With the filter", isNamed: true, reason });
  expect(filtered?.reports.map(whereName)).toEqual(["people", "Everything"]);
  expect(unfiltered?.reports).toHaveLength(1);
});

test("searches of one collection need no groups", () => {
  const found = groups([report({ slice: "filtered" }), report({ slice: "unfiltered" })]);

  expect(found.map((group) => group.isNamed)).toEqual([false, false]);
});

test("failed and late searches are named with their error", () => {
  const slices = [
    report({ slice: "filtered", corpus: "people", status: "failed", error: "throttled" }),
    report({ slice: "unfiltered", status: "timeout" }),
    report({}),
  ];

  expect(missingParts(response(...slices))).toEqual([
    "people, with the filter: failed (throttled).",
    "Without a filter: did not end in time.",
  ]);
  expect(reportName(report({ corpus: "all", slice: "inferred" }))).toBe(
    "Everything, with the inferred filter",
  );
});
