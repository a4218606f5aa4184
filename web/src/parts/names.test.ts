import { expect, test } from "vitest";
import { documentKey, documentName, keyIn, place, plain } from "./names";

test("controls that reverse a text are shown", () => {
  expect(documentName("s3://bucket/legal/dm\u202Efdp.exe")).toBe("dm[U+202E]fdp.exe");
  expect(documentKey("s3://bucket/\u2066a\u2069/b.md")).toBe("[U+2066]a[U+2069]/b.md");
  expect(plain("costs $1000\u202B not")).toBe("costs $1000[U+202B] not");
});

test("a key stays as it is written, and text of right-to-left languages too", () => {
  expect(keyIn("s3://bucket/a\u202Eb.md")).toBe("a\u202Eb.md");
  expect(plain("عقد\u200F 2024")).toBe("عقد\u200F 2024");
});

test("a place says whether it is a slide, and whether its text was read from an image", () => {
  expect(place({ page: 3, is_slide: true, section: "Plans" })).toBe("slide 3 › Plans");
  expect(place({ page: 3, last_page: 4, is_slide: true })).toBe("slides 3 to 4");
  expect(place({ page: 7, is_recognized: true })).toBe("page 7 › read from an image");
  expect(place({ page: null })).toBe("");
});
