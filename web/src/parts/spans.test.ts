import { describe, expect, test } from "vitest";
import { beginning, cut, length, slice, spans } from "./spans";

describe("cut", () => {
  test("pieces add up to the text", () => {
    const text = "One [1]. Two.\n\nThree [2].";
    const pieces = cut(text, [
      { start: 0, end: 8 },
      { start: 15, end: 25 },
    ]);
    expect(pieces.map((piece) => piece.text).join("")).toBe(text);
    expect(pieces.map((piece) => piece.sentence)).toEqual([0, null, 1]);
  });

  test("offsets count characters beyond 16 bits once", () => {
    expect(cut("😀 yes. No.", [{ start: 0, end: 6 }])[0]?.text).toBe("😀 yes.");
  });

  test("sentences beyond the text so far are cut at its end", () => {
    expect(cut("Hel", [{ start: 0, end: 9 }])).toEqual([{ text: "Hel", sentence: 0 }]);
  });
});

test("overlapping ranges never repeat a character", () => {
  const parts = spans("abcdef", [
    { start: 1, end: 4 },
    { start: 2, end: 5 },
  ]);
  expect(parts.map((part) => part.text).join("")).toBe("abcdef");
  expect(
    parts
      .filter((part) => part.inside)
      .map((part) => part.text)
      .join(""),
  ).toBe("bcde");
});

test("a slice never splits a character beyond 16 bits", () => {
  expect(slice("a😀b😀", 1, 3)).toBe("😀b");
  expect(length("a😀b😀")).toBe(4);
});

test("a beginning ends with a whole word, if words are not very long", () => {
  expect(beginning("One two three", 9)).toBe("One two");
  expect(beginning("One two", 7)).toBe("One two");
  expect(beginning("😀".repeat(50), 2)).toBe("😀😀");
});
