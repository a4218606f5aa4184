import { expect, test } from "vitest";
import { conditionsOf } from "./parts/filters";
import {
  DEFAULTS,
  fromAsk,
  fromParams,
  type Settings,
  toAsk,
  toParams,
  toRetrieve,
  withoutInferred,
} from "./settings";

const FULL: Settings = {
  question: "Was gilt für 50 % & mehr?",
  corpus: "people",
  version: 2026,
  facets: { topic: ["leave", "pay"], draft: [false] },
  mode: "strict",
  infer: false,
  reranker: "none",
  minRelevance: 0.5,
  topK: 20,
  language: "German",
};

test("an address replays every setting", () => {
  expect(fromParams(new URLSearchParams(toParams(FULL).toString()))).toEqual(FULL);
});

test("a kept question has the settings that it was asked with", () => {
  const { question, ...asked } = toAsk(FULL);

  expect(fromAsk(question, asked)).toEqual({ ...FULL, minRelevance: null });
  expect(fromAsk("A", {})).toEqual({ ...DEFAULTS, question: "A" });
});

test("defaults leave the address empty", () => {
  expect(toParams(DEFAULTS).toString()).toBe("");
  expect(fromParams(new URLSearchParams())).toEqual(DEFAULTS);
});

test("a version keeps its type", () => {
  const params = toParams({ ...DEFAULTS, version: "2026" });
  expect(fromParams(params).version).toBe("2026");
});

test("values that are not valid count as absent", () => {
  const params = new URLSearchParams({ facets: '{"a": 1}', version: "[1]", k: "-3", mode: "no" });
  expect(fromParams(params)).toEqual(DEFAULTS);
});

test("a question takes the settings of the API", () => {
  expect(toAsk(FULL)).toEqual({
    question: FULL.question,
    corpus_filter: "people",
    version_filter: 2026,
    metadata_filter: { topic: { $in: ["leave", "pay"] }, draft: { $in: [false] } },
    filter_mode: "strict",
    infer_filter: false,
    rerank: false,
    top_k: 20,
    language: "German",
  });
});

test("a follow-up is sent with its conversation", () => {
  const history = [{ role: "user" as const, content: "How long is leave?" }];
  expect(toAsk({ ...DEFAULTS, question: "And in Wales?" }, { history, rewrite: true })).toEqual({
    question: "And in Wales?",
    chat_history: history,
    rewrite_question: true,
  });
  expect(toAsk({ ...DEFAULTS, question: "And in Wales?" }, { history, rewrite: false })).toEqual({
    question: "And in Wales?",
    chat_history: history,
  });
});

test("default settings are left to the deployment", () => {
  expect(toAsk({ ...DEFAULTS, question: "Why?" })).toEqual({ question: "Why?" });
  expect(toRetrieve({ ...DEFAULTS, question: "Why?" })).toEqual({ query: "Why?", explain: true });
});

test("without one inferred condition, the others are preferred as chosen filters", () => {
  const inferred = conditionsOf({
    $and: [{ customer: "Northwind" }, { year: { $in: [2024, 2025] } }],
  });
  const chosen: Settings = { ...DEFAULTS, facets: { topic: ["pay"] } };

  expect(withoutInferred(chosen, inferred, "customer")).toEqual({
    ...chosen,
    infer: false,
    facets: { topic: ["pay"], year: [2024, 2025] },
  });
  expect(withoutInferred(chosen, conditionsOf({ year: 2024 }), "year")).toEqual({
    ...chosen,
    infer: false,
  });
});

test("an inferred condition never becomes a strict filter", () => {
  const inferred = conditionsOf({ $and: [{ customer: "Northwind" }, { year: 2024 }] });

  expect(withoutInferred(FULL, inferred, "customer")).toEqual(FULL);
});
