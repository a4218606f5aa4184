/** A question as others would send it: with curl, in Python, or on the command line. */
import { type Settings, toAsk } from "../../settings";

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const PROOFS = {
  none: "",
  oidc: ` -H "Authorization: Bearer $TOKEN"`,
  api_key: ` -H "x-api-key: $API_KEY"`,
};

export function asCurl(settings: Settings, origin: string, auth: keyof typeof PROOFS): string {
  const body = quoted(JSON.stringify(toAsk(settings)));
  return `curl -sN ${origin}/api/ask/stream -H 'Content-Type: application/json'${PROOFS[auth]} -d ${body}`;
}

export function asPython(settings: Settings): string {
  const { question, ...options } = toAsk(settings) as Record<string, unknown>;
  const named = Object.entries(options).map(([name, value]) => `, ${name}=${python(value)}`);
  return `from ragstack_common.shortcuts import ask\n\nprint(ask(${python(question)}${named.join("")}).answer)\n`;
}

export function asCommand(settings: Settings): string {
  const { corpus, version, facets, mode, infer, reranker, topK, language } = settings;
  const options = [
    corpus !== null && `--corpus ${quoted(corpus)}`,
    version !== null && `--doc-version ${quoted(String(version))}`,
    Object.keys(facets).length > 0 && `--filter ${quoted(JSON.stringify(toAsk(settings).metadata_filter))}`,
    mode === "strict" && "--filter-mode strict",
    !infer && "--no-infer",
    reranker !== null && `--rerank ${reranker}`,
    topK !== null && `--top-k ${topK}`,
    language !== null && `--language ${quoted(language)}`,
  ].filter(Boolean);
  return ["ragstack ask", quoted(settings.question), ...options].join(" ");
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
