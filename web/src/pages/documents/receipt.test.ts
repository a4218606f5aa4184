import { describe, expect, test } from "vitest";
import type { DocumentReceipt } from "../../api/types";
import { inPercent, MAX_STRIP_PAGES, missing, pageOf, share, strip } from "./receipt";

const PICTURE = "it is a picture";

function part(name: string, read = 0, why = PICTURE, example: string | null = null) {
  return { part: name, words: read * 2, read, why, example };
}

function receipt(pages: number, not_read: ReturnType<typeof part>[], more = 0): DocumentReceipt {
  return {
    compared_at: "2026-01-01T00:00:00Z",
    chunks: 1,
    words: 1000,
    compared: 400,
    read: 300,
    complete: false,
    counted: [
      { what: "pages", number: pages, read: pages - not_read.length - more, why: null },
      { what: "words", number: 1000, read: 300, why: null },
    ],
    left_out: [],
    not_read,
    parts_not_read: not_read.length + more,
    recognized: [],
    unreadable: null,
  };
}

describe("what was not read", () => {
  test("parts with one reason are named together, in the order of the first", () => {
    const parts = [
      part("page 2"),
      part("page 3", 4, "5 of 9 words", "Ask"),
      part("page 4"),
      part("page 5", 1),
    ];

    const found = missing(parts);

    expect(found.map((each) => each.parts.map(({ part }) => part))).toEqual([
      ["page 2", "page 4"],
      ["page 3"],
      ["page 5"],
    ]);
    expect(found.map((each) => each.isPartly)).toEqual([false, true, true]);
  });

  test("two parts with examples stay apart", () => {
    const parts = [part("page 1", 2, "a half", "Ask"), part("page 2", 2, "a half", "Ask")];

    expect(missing(parts)).toHaveLength(2);
  });

  test("only pages lead to a page: a sheet may have the name of one", () => {
    expect(["page 12", "sheet page 12", "text", "page 1b"].map(pageOf)).toEqual([12, null, null, null]);
  });
});

describe("the strip of pages", () => {
  test("pages that were read are together between those that were not", () => {
    expect(strip(receipt(7, [part("page 1"), part("page 4", 3), part("page 5")]))).toEqual([
      { first: 1, last: 1, state: "missing" },
      { first: 2, last: 3, state: "read" },
      { first: 4, last: 4, state: "partly" },
      { first: 5, last: 5, state: "missing" },
      { first: 6, last: 7, state: "read" },
    ]);
  });

  test("it ends with the last page that was not read", () => {
    expect(strip(receipt(2, [part("page 2")])).at(-1)).toEqual({ first: 2, last: 2, state: "missing" });
  });

  test("there is none if it would hide something, or has nothing to show", () => {
    expect(strip(receipt(3, []))).toEqual([]);
    expect(strip(receipt(1, [part("page 1")]))).toEqual([]);
    expect(strip(receipt(40, [part("page 2")], 1))).toEqual([]);
    expect(strip(receipt(MAX_STRIP_PAGES + 1, [part("page 2")]))).toEqual([]);
  });
});

test("the share of a sample is that of the words that were looked for", () => {
  const sampled = receipt(4, [part("page 2")]);

  expect(sampled.counted.map((line) => share(line, sampled))).toEqual([0.75, 0.75]);
  expect(share({ what: "words", number: 0, read: 0, why: null }, { ...sampled, compared: 0 })).toBe(0);
});

test("only a whole is 100 %", () => {
  expect([0, 0.004, 0.5, 0.9999, 1].map(inPercent)).toEqual(["0 %", "0 %", "50 %", "99 %", "100 %"]);
});
