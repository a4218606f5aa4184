import { describe, expect, it } from "vitest";
import { parsePairs, parseValue, writeValue } from "./attributes";

describe("attributes", () => {
  it("are read with their types", () => {
    expect(parsePairs('year = 2024\npublic=true\n\ntags=["a","b"]\ntitle="7"\nnote=a=b')).toEqual({
      year: 2024,
      public: true,
      tags: ["a", "b"],
      title: "7",
      note: "a=b",
    });
  });

  it.each(["year", "=2024", "year="])("are not read from %s", (line) => {
    expect(parsePairs(line)).toContain("NAME=VALUE");
  });

  it("have each name once", () => {
    expect(parsePairs("a=1\na=2")).toBe("“a” is there twice");
  });

  it.each([7, "7", true, "true", "plain", '"quoted"', ["a", "b"], "[]", "null"])(
    "are written so that %j is read again",
    (value) => {
      expect(parseValue(writeValue(value))).toEqual(value);
    },
  );
});
