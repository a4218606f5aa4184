/** A question or a search as others would send it: with curl, in Python, or on the command line. */
import { type Settings, toAsk, toRetrieve } from "../settings";

export type Kind = "ask" | "search";

const PATHS: Record<Kind, string> = { ask: "/api/ask/stream", search: "/api/retrieve" };

const PROOFS = {
  none: "",
  oidc: ` -H "Authorization: Bearer $TOKEN"`,
  api_key: ` -H "x-api-key: $API_KEY"`,
};

const PYTHON: Record<Kind, (call: string) => string> = {
  ask: (call) => `from ragstack_common.shortcuts import ask\n\nprint(${call}.answer)\n`,
  search: (call) =>
    `from ragstack_common.shortcuts import search\n\nfor result in ${call}.results:\n    print(result.score, result.source)\n`,
};

export function asCurl(kind: Kind, settings: Settings, origin: string, auth: keyof typeof PROOFS): string {
  const body = quoted(JSON.stringify(request(kind, settings)));
  return `curl -sN ${origin}${PATHS[kind]} -H 'Content-Type: application/json'${PROOFS[auth]} -d ${body}`;
}

export function asPython(kind: Kind, settings: Settings): string {
  const { question, query, ...options } = request(kind, settings);
  const named = Object.entries(options).map(([name, value]) => `, ${name}=${python(value)}`);
  return PYTHON[kind](`${kind}(${python(question ?? query)}${named.join("")})`);
}

export function asCommand(kind: Kind, settings: Settings): string {
  const { corpus, version, facets, mode, infer, reranker, topK, minRelevance, language } = settings;
  const options = [
    corpus !== null && `--corpus ${quoted(corpus)}`,
    version !== null && `--doc-version ${quoted(String(version))}`,
    Object.keys(facets).length > 0 && `--filter ${quoted(JSON.stringify(toAsk(settings).metadata_filter))}`,
    mode === "strict" && "--filter-mode strict",
    !infer && "--no-infer",
    reranker !== null && `--rerank ${quoted(reranker)}`,
    topK !== null && `--top-k ${topK}`,
    ...(kind === "ask"
      ? [language !== null && `--language ${quoted(language)}`]
      : [minRelevance !== null && `--min-relevance ${minRelevance}`, "--explain"]),
  ].filter(Boolean);
  return [`ragstack ${kind === "ask" ? "ask" : "query"}`, quoted(settings.question), ...options].join(" ");
}

/** A JSON value as a Python literal. */
export function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}: ${python(each)}`)
      .join(", ")}}`;
  }
  return JSON.stringify(value);
}

function request(kind: Kind, settings: Settings): Record<string, unknown> {
  return kind === "ask" ? { ...toAsk(settings) } : { ...toRetrieve(settings) };
}

/** A text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
