import { expect, test } from "vitest";
import type { DocumentView } from "../api/types";
import { described } from "./PagePicture";

const TEXT = "Offices open at nine.\nThe canteen opens at eleven.";

function view(...marks: object[]): DocumentView {
  return { page: 3, text: TEXT, marks } as unknown as DocumentView;
}

test("a picture is described by its document, its page and the marked words", () => {
  const marks = [
    { page: 3, start: 0, end: 33 },
    { page: 3, start: 40, end: 49 },
    { page: 4, start: 0, end: 7 },
  ];

  expect(described(view(...marks), "s3://b/a/plan.pdf")).toBe(
    "plan.pdf, page 3: “Offices open at nine. The canteen … at eleven”",
  );
});

test("long words are cut in the description", () => {
  const long = { ...view({ page: 3, start: 0, end: 900 }), text: "word ".repeat(200) };

  expect(described(long, "s3://b/plan.pdf")).toMatch(/^plan\.pdf, page 3: “(word ){59}word …”$/);
});
