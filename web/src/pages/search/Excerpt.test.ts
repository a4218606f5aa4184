import { expect, test } from "vitest";
import { startOf } from "./Excerpt";
import { matches } from "./matches";

const start = (question: string, text: string) => startOf(Array.from(text), matches(question, text));

test("an excerpt begins at the line with most of the words", () => {
  const text = `Leave\n${"Other things. ".repeat(40)}\nEvery employee has 27 days of annual leave.`;

  expect(text.slice(start("days of annual leave", text))).toMatch(/^Every employee/);
});

test("without words that match, it begins at the beginning", () => {
  expect(start("parking", "Other things. ".repeat(40))).toBe(0);
});
