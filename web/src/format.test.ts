import { expect, it } from "vitest";
import { count, duration } from "./format";

it.each([
  [null, "–"],
  [0, "0 s"],
  [0.25, "250 ms"],
  [0.9997, "1 s"],
  [12.34, "12.3 s"],
  [5, "5 s"],
  [119, "2 min"],
  [7300, "2 h"],
  [260_000, "3 days"],
])("a duration of %s seconds is written as %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

it("a counted noun has a plural", () => {
  expect([0, 1, 2].map((number) => count(number, "document"))).toEqual([
    "0 documents",
    "1 document",
    "2 documents",
  ]);
});
