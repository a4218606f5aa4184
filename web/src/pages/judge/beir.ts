/** Judgments as a data set in BEIR's form, with the same files as `ragstack judgments export` writes. */
import type { Client } from "../../api/client";
import { MAX_TOP_K } from "../../api/facts";
import type { RetrieveRequest } from "../../api/types";
import type { Question } from "../../judgments";
import { keyIn } from "../../parts/names";

const SOURCE = "x-amz-bedrock-kb-source-uri";
const OWN_ATTRIBUTES = "x-amz-bedrock-kb-";
const AT_ONCE = 4;

interface CorpusDocument {
  _id: string;
  title: string;
  text: string;
  metadata: Record<string, unknown>;
}

/** The judged documents by source, each with the passages that searches find; without any, it is null. */
export type Corpus = ReadonlyMap<string, CorpusDocument | null>;

export async function readCorpus(
  client: Pick<Client, "post">,
  questions: readonly Question[],
  onProgress: (done: number, total: number) => void,
  signal: AbortSignal,
): Promise<Corpus> {
  const judged = new Map(
    questions.flatMap(({ text, grades }) => [...grades.keys()].map((source) => [source, text] as const)),
  );
  const sources = [...judged.keys()].sort();
  const corpus = new Map<string, CorpusDocument | null>(sources.map((source) => [source, null]));
  let started = 0;
  let done = 0;
  const work = async () => {
    for (let source = sources[started]; source !== undefined; source = sources[started]) {
      started += 1;
      corpus.set(source, await readDocument(client, source, judged.get(source) ?? "", signal));
      done += 1;
      onProgress(done, sources.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return corpus;
}

async function readDocument(
  client: Pick<Client, "post">,
  source: string,
  query: string,
  signal: AbortSignal,
): Promise<CorpusDocument | null> {
  const request: RetrieveRequest = {
    query,
    metadata_filter: { [SOURCE]: { $eq: source } },
    filter_mode: "strict",
    infer_filter: false,
    deduplicate_by: "chunk",
    top_k: MAX_TOP_K,
  };
  const { results } = await client.post("/api/retrieve", request, signal);
  const own = results.filter((result) => result.source === source);
  if (own.length === 0) return null;
  const name = keyIn(source);
  const attributes = Object.entries(own[0]?.metadata ?? {}).filter(
    ([key]) => !key.startsWith(OWN_ATTRIBUTES),
  );
  return {
    _id: name,
    title: (name.split("/").pop() ?? name).replace(/(?<=.)\.[^.]*$/, ""),
    text: own.map((result) => result.content).join("\n\n"),
    metadata: Object.fromEntries(attributes),
  };
}

export function queriesFile(questions: readonly Question[]): string {
  return lines(
    questions.map(({ id, text, answer }) => ({
      _id: id,
      text,
      metadata: answer?.reference ? { answer: answer.reference } : {},
    })),
  );
}

export function qrelsFile(questions: readonly Question[], corpus: Corpus): string {
  const rows = questions.flatMap(({ id, grades }) =>
    [...grades].flatMap(([source, grade]) => {
      const document = corpus.get(source);
      return document ? [[id, document._id, grade].join("\t")] : [];
    }),
  );
  return `${["query-id\tcorpus-id\tscore", ...rows].join("\n")}\n`;
}

export function corpusFile(corpus: Corpus): string {
  return lines([...corpus.values()].filter((document) => document !== null));
}

/** The questions with their relevant documents, to measure a running stack with all of its documents. */
export function questionsFile(questions: readonly Question[]): string {
  const rows = questions.flatMap(({ text, grades }) =>
    [...grades].flatMap(([source, grade]) => (grade > 0 ? [[text, source]] : [])),
  );
  return [["question", "file"], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function lines(entries: readonly object[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}
