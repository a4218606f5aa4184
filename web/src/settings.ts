/** What a search or a question is asked with; one form for the address, the Test Target box and the requests. */
import { RERANKERS } from "./api/facts";
import type { AskRequest, RetrieveRequest } from "./api/types";
import type { Condition } from "./parts/filters";

/** "none": the engine's order. */
export const RERANKER_CHOICES = ["none", ...RERANKERS] as const;
export type Reranker = (typeof RERANKER_CHOICES)[number];

export type Scalar = string | number | boolean;

export interface Settings {
  question: string;
  /** null: everything in one search; "all": balanced over the collections. */
  corpus: string | null;
  version: string | number | null;
  /** Chosen values of attributes. */
  facets: Record<string, Scalar[]>;
  mode: "prefer" | "strict";
  infer: boolean;
  /** null: as the deployment is configured. */
  reranker: Reranker | null;
  topK: number | null;
  /** Of searches: results with a lower relevance are left out. */
  minRelevance: number | null;
  language: string | null;
}

export const DEFAULTS: Settings = {
  question: "",
  corpus: null,
  version: null,
  facets: {},
  mode: "prefer",
  infer: true,
  reranker: null,
  topK: null,
  minRelevance: null,
  language: null,
};

/** Read the settings of an address; what is not valid counts as absent. */
export function fromParams(params: URLSearchParams): Settings {
  const topK = Number(params.get("k"));
  const minRelevance = Number(params.get("rel"));
  return {
    question: params.get("q") ?? "",
    corpus: params.get("corpus"),
    version: json<string | number>(params.get("version"), (value) =>
      ["string", "number"].includes(typeof value),
    ),
    facets:
      json<Record<string, Scalar[]>>(
        params.get("facets"),
        (value) => typeof value === "object" && value !== null && Object.values(value).every(Array.isArray),
      ) ?? {},
    mode: params.get("mode") === "strict" ? "strict" : "prefer",
    infer: params.get("infer") !== "off",
    reranker: rerankerOf(params.get("rerank")),
    topK: Number.isInteger(topK) && topK >= 1 ? topK : null,
    minRelevance: minRelevance > 0 && minRelevance <= 1 ? minRelevance : null,
    language: params.get("lang"),
  };
}

/** The reranker of that name; null if there is none. */
export function rerankerOf(name: string | null): Reranker | null {
  return RERANKER_CHOICES.find((each) => each === name) ?? null;
}

/** Write the settings that differ from the defaults. */
export function toParams(settings: Settings): URLSearchParams {
  const params = new URLSearchParams();
  if (settings.question) params.set("q", settings.question);
  if (settings.corpus !== null) params.set("corpus", settings.corpus);
  if (settings.version !== null) params.set("version", JSON.stringify(settings.version));
  if (Object.keys(settings.facets).length > 0) params.set("facets", JSON.stringify(settings.facets));
  if (settings.mode !== "prefer") params.set("mode", settings.mode);
  if (!settings.infer) params.set("infer", "off");
  if (settings.reranker !== null) params.set("rerank", settings.reranker);
  if (settings.topK !== null) params.set("k", String(settings.topK));
  if (settings.minRelevance !== null) params.set("rel", String(settings.minRelevance));
  if (settings.language) params.set("lang", settings.language);
  return params;
}

/**
 * Remove an inferred condition. The others become chosen filters, which prefer documents as well; but not if filters
 * are strict, because then they would exclude what was found.
 */
export function withoutInferred(settings: Settings, conditions: readonly Condition[], key: string): Settings {
  const others = settings.mode === "strict" ? [] : conditions.filter(([each]) => each !== key);
  return { ...settings, infer: false, facets: { ...settings.facets, ...Object.fromEntries(others) } };
}

function options(settings: Settings) {
  const facets = Object.entries(settings.facets).filter(([, values]) => values.length > 0);
  return {
    ...(settings.corpus === null ? {} : { corpus_filter: settings.corpus }),
    ...(settings.version === null ? {} : { version_filter: settings.version }),
    ...(facets.length === 0
      ? {}
      : { metadata_filter: Object.fromEntries(facets.map(([key, values]) => [key, { $in: values }])) }),
    ...(settings.mode === "strict" && facets.length > 0 ? { filter_mode: "strict" as const } : {}),
    ...(settings.infer ? {} : { infer_filter: false }),
    ...(settings.reranker === null
      ? {}
      : { rerank: settings.reranker === "none" ? false : settings.reranker }),
    ...(settings.topK === null ? {} : { top_k: settings.topK }),
  };
}

/** The conversation before a question, and whether a model makes the question self-contained by it. */
export interface Before {
  history: NonNullable<AskRequest["chat_history"]>;
  rewrite: boolean;
}

export function toAsk(settings: Settings, before?: Before): AskRequest {
  return {
    question: settings.question,
    ...options(settings),
    ...(settings.language ? { language: settings.language } : {}),
    ...(before?.history.length
      ? { chat_history: before.history, ...(before.rewrite ? { rewrite_question: true } : {}) }
      : {}),
  };
}

/** The settings of a question that was asked, as far as they can be chosen here. */
export function fromAsk(question: string, asked: Partial<AskRequest>): Settings {
  const facets = Object.entries(asked.metadata_filter ?? {}).flatMap(([key, clause]) => {
    const values = (clause as { $in?: unknown } | null)?.$in;
    return Array.isArray(values) ? [[key, values as Scalar[]] as const] : [];
  });
  const { rerank } = asked;
  return {
    ...DEFAULTS,
    question,
    corpus: asked.corpus_filter ?? null,
    version: asked.version_filter ?? null,
    facets: Object.fromEntries(facets),
    mode: asked.filter_mode ?? DEFAULTS.mode,
    infer: asked.infer_filter ?? DEFAULTS.infer,
    reranker: rerank === false ? "none" : rerankerOf(rerank === true ? "lexical" : (rerank ?? null)),
    topK: asked.top_k ?? null,
    language: asked.language ?? null,
  };
}

export function toRetrieve(settings: Settings): RetrieveRequest {
  const limit = settings.minRelevance === null ? {} : { min_relevance: settings.minRelevance };
  return { query: settings.question, ...options(settings), ...limit, explain: true };
}

function json<T>(text: string | null, isValid: (value: unknown) => boolean): T | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isValid(value) ? (value as T) : null;
  } catch {
    return null;
  }
}
