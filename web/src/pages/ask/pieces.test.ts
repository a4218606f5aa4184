import { expect, test } from "vitest";
import { markers } from "./pieces";

test("only numbers that the sentence cites are markers", () => {
  expect(markers("Section [3] says so [1].", [1])).toEqual(["Section ", "[3]", " says so ", 1, "."]);
});
