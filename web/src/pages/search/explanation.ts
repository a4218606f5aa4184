/** Why a document is among the results, or not, and what people can do about it. */
import { MAX_TOP_K } from "../../api/facts";
import type { ExplainResponse } from "../../api/types";
import type { Settings } from "../../settings";

/** Another search that would find the document. */
export interface Step {
  label: string;
  settings: Settings;
}

export function steps(explanation: ExplainResponse, settings: Settings): Step[] {
  const { reason, rank, details } = explanation;
  switch (reason) {
    case "filtered out":
      return withoutFilters(details.filters ?? [], settings);
    case "below relevance":
      return settings.minRelevance === null
        ? []
        : [{ label: "Search without a minimum relevance", settings: { ...settings, minRelevance: null } }];
    case "ranked below": {
      const topK = Math.min(MAX_TOP_K, Math.ceil((rank ?? MAX_TOP_K) / 10) * 10);
      return rank !== null && rank <= MAX_TOP_K && topK > details.top_k
        ? [{ label: `Show ${topK} results`, settings: { ...settings, topK } }]
        : [];
    }
    case "not among candidates":
      return details.top_k < MAX_TOP_K
        ? [{ label: `Show up to ${MAX_TOP_K} results`, settings: { ...settings, topK: MAX_TOP_K } }]
        : [];
    default:
      return [];
  }
}

function withoutFilters(
  filters: NonNullable<ExplainResponse["details"]["filters"]>,
  settings: Settings,
): Step[] {
  const of = new Set(filters.map((each) => each.of));
  const others: Partial<Settings> = {
    ...(of.has("corpus_filter") ? { corpus: null } : {}),
    ...(of.has("version_filter") ? { version: null } : {}),
  };
  const found: Step[] = [];
  if (of.has("metadata_filter") && settings.mode === "strict") {
    found.push({
      label: "Prefer what matches the filter",
      settings: { ...settings, ...others, mode: "prefer" },
    });
  }
  const all = { ...others, ...(of.has("metadata_filter") ? { facets: {}, mode: "prefer" as const } : {}) };
  if (Object.keys(all).length > 0) {
    const label = `Search without ${of.size > 1 ? "these filters" : "this filter"}`;
    found.push({ label, settings: { ...settings, ...all } });
  }
  const own = filters.find((each) => each.of === "MULTI_CORPUS_METADATA")?.value;
  if (typeof own === "string") {
    found.push({
      label: `Search only the collection ${own}`,
      settings: { ...settings, ...all, corpus: own },
    });
  }
  return found;
}

/** What people call the filters of a request. */
export const FILTERS: Record<string, string> = {
  metadata_filter: "The filter",
  corpus_filter: "The collection",
  version_filter: "The version",
  MULTI_CORPUS_METADATA: "The configured collections",
};
