import { describe, expect, test } from "vitest";
import type { Sentence } from "../../api/types";
import { markers, verdict } from "./pieces";

describe("markers", () => {
  test("only numbers that the sentence cites are markers", () => {
    expect(markers("Section [3] says so [1].", [1])).toEqual(["Section ", "[3]", " says so ", 1, "."]);
  });
});

describe("verdict", () => {
  const sentence: Sentence = {
    support: null,
    start: 0,
    end: 1,
    text: "",
    citations: [1],
    unsupported: false,
    quotations: [],
  };

  test("a sentence with a verified quotation is quoted", () => {
    expect(verdict({ ...sentence, quotations: [{ text: "a", source: 1 }] })).toBe("quoted");
  });

  test("a citation alone is not a quotation", () => {
    expect(verdict(sentence)).toBe("cited");
  });

  test("a sentence without a citation that is not marked as unsupported has no verdict", () => {
    expect(verdict({ ...sentence, citations: [] })).toBeNull();
  });

  test("unsupported comes before everything else", () => {
    expect(verdict({ ...sentence, unsupported: true, quotations: [{ text: "a", source: 1 }] })).toBe(
      "unsupported",
    );
  });
});
