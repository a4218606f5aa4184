import { expect, test } from "vitest";
import type { Conversation } from "../api/types";
import { asMarkdown, fileName } from "./markdown";

test("a conversation has each question, its answer with the sources that it cites, and what was withheld", () => {
  const source = { number: 1, source: "s3://bucket/people/leave.md", cited: true, page: 2 };
  const response = { answer: "Twenty weeks. [1]", sources: [source, { ...source, number: 2, cited: false }] };
  const turns = [
    { question: "How\nlong?", response, withheld: null },
    { question: "And why?", response: null, withheld: "rights" },
  ];

  const text = asMarkdown({ title: "Leave", turns } as unknown as Conversation);

  expect(text).toBe(`# Leave

## How long?

Twenty weeks. [1]

- [1] people/leave.md, page 2

## And why?

*You may not see all documents from which this answer was made.*
`);
});

test("a file is named after the title", () => {
  expect(fileName("How long is it?")).toBe("How-long-is-it.md");
  expect(fileName("???")).toBe("conversation.md");
});
