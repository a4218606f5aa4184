import { expect, test } from "vitest";
import { slice } from "../../parts/spans";
import { matches } from "./matches";

const marked = (question: string, text: string) =>
  matches(question, text).map(({ start, end }) => slice(text, start, end));

test("words match in other forms, but common words do not", () => {
  const text = "Every employee has 25 days of annual leave; leaves of absence are approved by the manager.";

  expect(marked("How many days of annual leave does an employee have?", text)).toEqual([
    "employee",
    "days",
    "annual leave",
    "leaves",
  ]);
  expect(marked("Who approves it?", text)).toEqual(["approved"]);
  expect(marked("day", text)).toEqual(["days"]);
});

test("other words do not match, though they begin alike", () => {
  expect(
    marked("contact international art", "The contract says internet, and the articles say more."),
  ).toEqual([]);
});

test("case and accents make no difference, and offsets count characters", () => {
  expect(marked("zurich API", "🙂 In ZÜRICH, the api is fast.")).toEqual(["ZÜRICH", "api"]);
});

test("languages without spaces have words too", () => {
  expect(marked("休暇", "年次休暇は25日です").length).toBe(1);
});
