import { describe, expect, it } from "vitest";
import type { Question } from "../../judgments";
import { corpusFile, qrelsFile, queriesFile, questionsFile, readCorpus } from "./beir";

const QUESTIONS: Question[] = [
  {
    id: "q1",
    text: 'How long is the "leave"?',
    grades: new Map([
      ["s3://b/people/leave.md", 2],
      ["s3://b/x.md", 0],
      ["s3://b/deleted.md", 1],
    ]),
    answer: { grade: 0, reference: "12 weeks" },
  },
];

/** Finds two passages of each document, except those of one that was deleted. */
const SEARCHES = {
  async post<T>(_path: string, body: unknown): Promise<T> {
    const request = body as { metadata_filter: Record<string, { $eq: string }> };
    const source = request.metadata_filter["x-amz-bedrock-kb-source-uri"]?.$eq;
    const passage = { source, metadata: { topic: "people", "x-amz-bedrock-kb-chunk-id": "1" } };
    const results = ["First.", "Second."].map((content) => ({ ...passage, content }));
    return { results: source === "s3://b/deleted.md" ? [] : results } as T;
  },
};

describe("files in BEIR's form", () => {
  const read = () => readCorpus(SEARCHES, QUESTIONS, () => undefined, new AbortController().signal);

  it("have the questions with their reference answers", () => {
    expect(queriesFile(QUESTIONS)).toBe(
      '{"_id":"q1","text":"How long is the \\"leave\\"?","metadata":{"answer":"12 weeks"}}\n',
    );
  });

  it("have the passages of the judged documents", async () => {
    expect(corpusFile(await read()).split("\n")[0]).toBe(
      '{"_id":"people/leave.md","title":"leave","text":"First.\\n\\nSecond.","metadata":{"topic":"people"}}',
    );
  });

  it("grade only documents that the corpus has", async () => {
    expect(qrelsFile(QUESTIONS, await read())).toBe(
      "query-id\tcorpus-id\tscore\nq1\tpeople/leave.md\t2\nq1\tx.md\t0\n",
    );
  });

  it("name the relevant documents of each question", () => {
    expect(questionsFile(QUESTIONS)).toBe(
      'question,file\r\n"How long is the ""leave""?",s3://b/people/leave.md\r\n' +
        '"How long is the ""leave""?",s3://b/deleted.md\r\n',
    );
  });
});
