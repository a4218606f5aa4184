import { expect, test } from "vitest";
import { address, isSame, parsePlace } from "./route";

test("an address leads back to its parts", () => {
  const place = parsePlace(address("documents", { q: "50 % #1 & ?" }, "a/b c#d?e"));
  expect([place.page, place.id, place.params.get("q")]).toEqual(["documents", "a/b c#d?e", "50 % #1 & ?"]);
});

test("an empty address asks", () => {
  expect(parsePlace("")).toMatchObject({ page: "ask", id: null });
});

test.each([
  ["#/ask?q=two%20words", "#/ask?q=two+words", true],
  ["#/search?q=%C3%BC&k=3", "#/search?q=ü&k=3", true],
  ["#/documents/a%2Fb", "#/documents/a/b", true],
  ["#/ask?q=a", "#/ask?q=b", false],
  ["#/ask?q=a", "#/search?q=a", false],
])("%s and %s are the same place: %s", (one, other, expected) => {
  expect(isSame(one, other)).toBe(expected);
});

test.each([
  ["#/judge/measure?q=leave", "quality", "measure"],
  ["#/operate/access", "admin", "access"],
])("the former address %s leads to %s", (former, page, id) => {
  expect(parsePlace(former)).toMatchObject({ page, id });
});
