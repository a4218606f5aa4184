import { expect, test } from "vitest";
import { address, parsePlace } from "./route";

test("an address leads back to its parts", () => {
  const place = parsePlace(address("documents", { q: "50 % #1 & ?" }, "a/b c#d?e"));
  expect([place.page, place.id, place.params.get("q")]).toEqual(["documents", "a/b c#d?e", "50 % #1 & ?"]);
});

test("an empty address asks", () => {
  expect(parsePlace("")).toMatchObject({ page: "ask", id: null });
});
