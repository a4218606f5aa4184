import { describe, expect, it } from "vitest";
import type { Question } from "../../judgments";
import { corpusFile, qrelsFile, queriesFile } from "./beir";

describe("files in BEIR's form", () => {
  const known: Question[] = [
    {
      id: "q1",
      text: "How long is the leave?",
      grades: new Map([
        ["s3://b/leave.md", 2],
        ["s3://b/x.md", 0],
      ]),
      answer: { grade: 0, reference: "12 weeks" },
    },
  ];

  it("have the questions with their reference answers", () => {
    expect(queriesFile(known)).toBe(
      '{"_id":"q1","text":"How long is the leave?","metadata":{"answer":"12 weeks"}}\n',
    );
  });

  it("have the grades, and none of answers", () => {
    expect(qrelsFile(known)).toBe("query-id\tcorpus-id\tscore\nq1\ts3://b/leave.md\t2\nq1\ts3://b/x.md\t0\n");
  });

  it("have each judged document once", () => {
    const ids = corpusFile([...known, ...known], (uri) => uri)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)._id);

    expect(ids).toEqual(["s3://b/leave.md", "s3://b/x.md"]);
  });
});
