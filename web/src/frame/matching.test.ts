import { expect, test } from "vitest";
import { type Entry, matching } from "./Palette";

const entry = (title: string): Entry => ({ id: title, group: "", icon: "file", title, run: () => undefined });
const ENTRIES = ["New question", "Documents", "Theme: Dark", "Sprache: Deutsch"].map(entry);

test.each([
  ["", ["New question", "Documents", "Theme: Dark", "Sprache: Deutsch"]],
  ["dark th", ["Theme: Dark"]],
  ["DO", ["Documents"]],
  ["uments", []],
  ["deu", ["Sprache: Deutsch"]],
])("“%s” finds what has words that begin so", (text, titles) => {
  expect(matching(ENTRIES, text).map(({ title }) => title)).toEqual(titles);
});
