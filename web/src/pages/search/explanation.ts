/** Why a document is among the results, or not, and what people can do about it. */
import { MAX_TOP_K } from "../../api/facts";
import type { ExplainResponse } from "../../api/types";
import { figure, isKnown, percent } from "../../format";
import { messages } from "../../messages";
import { describe } from "../../parts/filters";
import { plain } from "../../parts/names";
import { sentence } from "../../parts/states";
import type { Settings } from "../../settings";

type Excluding = NonNullable<ExplainResponse["details"]["filters"]>[number];

/** The reason in words. What the API says of a document itself, such as why it failed, is given as it is. */
export function told(explanation: ExplainResponse, resultsShown: number): string {
  const text = messages("search");
  const { reason, rank, candidates, details } = explanation;
  const { relevance, min_relevance, score, min_score, top_k } = details;
  const late = explanation.text.includes(LATE) ? ` ${text.someLate}` : "";
  switch (reason) {
    case "found":
      return rank === null ? plain(explanation.text) : text.hasRank(rank, Math.max(resultsShown, rank));
    case "filtered out":
      return (details.filters ?? []).map(excluded).join(" ") + late;
    case "below relevance":
      return text.belowRelevance(percent(relevance), percent(min_relevance)) + late;
    case "ranked below":
      if (isKnown(score) && isKnown(min_score) && score < min_score)
        return text.belowScore(figure(score), figure(min_score)) + late;
      return rank === null ? plain(explanation.text) : text.rankedBelow(rank, top_k) + late;
    case "not among candidates":
      return text.notCandidate(String(candidates ?? "")).replace(/ {2,}/, " ") + late;
    default:
      return sentence(plain(explanation.text));
  }
}

/** How the API says that a part of a search is missing. */
const LATE = "failed or were late";

/** Which filter excludes a document, and what the document has: "Only …; this one …". */
function excluded({ of, clause, attribute, value }: Excluding): string {
  const text = messages("search");
  const isCollection = of === "corpus_filter" || of === "MULTI_CORPUS_METADATA";
  const wanted = valuesIn(clause, attribute);
  const what =
    wanted === null || of === "metadata_filter"
      ? text.passing(describe(clause))
      : of === "version_filter"
        ? text.ofVersion(text.either(wanted))
        : (of === "corpus_filter" ? text.inCollection : text.inCollections)(text.either(wanted));
  const own = !isKnown(value)
    ? isCollection
      ? text.noCollection
      : text.noValue(attribute)
    : isCollection
      ? text.ownCollection(shown(value))
      : text.ownValue(attribute, shown(value));
  return plain(`${what}; ${own}.`);
}

/** The values that a clause asks for, if it asks for equality. */
function valuesIn(clause: unknown, attribute: string): string[] | null {
  const asked = (clause as Record<string, unknown>)?.[attribute];
  if (!isKnown(asked)) return null;
  if (typeof asked !== "object") return [String(asked)];
  const { $eq, $in } = asked as { $eq?: unknown; $in?: unknown };
  if (isKnown($eq)) return [String($eq)];
  return Array.isArray($in) ? $in.map(String) : null;
}

function shown(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(", ") : String(value);
}

/** Another search that would find the document. */
export interface Step {
  label: string;
  settings: Settings;
}

export function steps(explanation: ExplainResponse, settings: Settings): Step[] {
  const text = messages("search");
  const { reason, rank, details } = explanation;
  switch (reason) {
    case "filtered out":
      return withoutFilters(details.filters ?? [], settings);
    case "below relevance":
      return settings.minRelevance === null
        ? []
        : [{ label: text.withoutMinimum, settings: { ...settings, minRelevance: null } }];
    case "ranked below": {
      const topK = Math.min(MAX_TOP_K, Math.ceil((rank ?? MAX_TOP_K) / 10) * 10);
      return rank !== null && rank <= MAX_TOP_K && topK > details.top_k
        ? [{ label: text.showResults(topK), settings: { ...settings, topK } }]
        : [];
    }
    case "not among candidates":
      return details.top_k < MAX_TOP_K
        ? [{ label: text.showUpTo(MAX_TOP_K), settings: { ...settings, topK: MAX_TOP_K } }]
        : [];
    default:
      return [];
  }
}

function withoutFilters(filters: readonly Excluding[], settings: Settings): Step[] {
  const text = messages("search");
  const of = new Set(filters.map((each) => each.of));
  const others: Partial<Settings> = {
    ...(of.has("corpus_filter") ? { corpus: null } : {}),
    ...(of.has("version_filter") ? { version: null } : {}),
  };
  const found: Step[] = [];
  if (of.has("metadata_filter") && settings.mode === "strict") {
    found.push({ label: text.preferFilter, settings: { ...settings, ...others, mode: "prefer" } });
  }
  const all = { ...others, ...(of.has("metadata_filter") ? { facets: {}, mode: "prefer" as const } : {}) };
  if (Object.keys(all).length > 0)
    found.push({ label: text.withoutFilters(of.size), settings: { ...settings, ...all } });
  const own = filters.find((each) => each.of === "MULTI_CORPUS_METADATA")?.value;
  if (typeof own === "string")
    found.push({ label: text.onlyCollection(plain(own)), settings: { ...settings, ...all, corpus: own } });
  return found;
}
