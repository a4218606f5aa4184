import { expect, test } from "vitest";
import type { DocumentView } from "../api/types";
import { found } from "./marks";

const BOX = { left: 0.1, top: 0.2, width: 0.5, height: 0.02 };

function view(change: Partial<DocumentView>): DocumentView {
  return { page: 2, image: "iVBOR", marks: [], mark_pages: [], unmarked: [], ...change } as DocumentView;
}

function mark(change: object) {
  return { index: 0, page: 2, start: 0, end: 5, marked: true, boxes: [BOX], ...change };
}

test("words with a box on the page are marked", () => {
  expect(found(view({ marks: [mark({})] }), 1)).toEqual({
    text: "The quoted words are marked.",
    isComplete: true,
  });
});

test.each([
  ["no box", mark({ boxes: [], marked: false })],
  ["no box, whatever the service says", mark({ boxes: [] })],
  ["a box beside the page", mark({ boxes: [{ ...BOX, left: 1.2 }] })],
  ["a box above the page", mark({ boxes: [{ ...BOX, top: -0.5 }] })],
  ["an empty box", mark({ boxes: [{ ...BOX, width: 0 }] })],
  ["a box on another page", mark({ page: 3 })],
])("%s does not mark the words", (_, only) => {
  expect(found(view({ marks: [only] }), 1)).toMatchObject({
    text: expect.stringContaining("nothing is marked"),
    isComplete: false,
  });
});

test("the page with the marks is named", () => {
  const text = found(view({ marks: [mark({ page: 3 })], mark_pages: [3, 5] }), 1)?.text;

  expect(text).toBe("The quoted words are on pages 3, 5, not on this page.");
});

test("a quotation without a box is not counted", () => {
  const marks = [mark({}), mark({ index: 1, boxes: [] })];

  expect(found(view({ marks }), 2)).toEqual({
    text: "1 of 2 quotations are marked on what is shown here.",
    isComplete: false,
  });
});

test("a text without pages is marked by its offsets", () => {
  const marks = [mark({ page: null, boxes: [] })];

  expect(found(view({ page: null, image: null, marks }), 1)?.isComplete).toBe(true);
});
