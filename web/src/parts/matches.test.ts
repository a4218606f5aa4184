import { expect, test } from "vitest";
import { bestPart, inOneLine, matches, withoutSigns } from "./matches";
import { slice } from "./spans";

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

const partOf = (question: string, text: string) => {
  const { start, end } = bestPart(text, matches(question, text), 280);
  return text.slice(start, end);
};

test("an excerpt begins at the line with most of the words", () => {
  const text = `Leave\n${"Other things. ".repeat(40)}\nEvery employee has 27 days of annual leave.`;

  expect(partOf("days of annual leave", text)).toBe("Every employee has 27 days of annual leave.");
});

test("without words that match, it begins at the beginning", () => {
  const text = "Other things. ".repeat(40);

  expect(text.startsWith(partOf("parking", text))).toBe(true);
});

test("a table in one line has no signs of Markdown", () => {
  const text = "## Kept\n\n| Data | Kept for |\n| --- | ---: |\n| Readings | 25 months |\n\nThen deleted.";

  expect(inOneLine(text)).toBe("Kept · Data · Kept for\nReadings · 25 months · Then deleted.");
});

test("a table has a row in each line, without signs of Markdown", () => {
  expect(
    withoutSigns("## Day by day\n\n| Day | Who helps |\n| --- | --- |\n| Monday | Office team |\n"),
  ).toBe("Day by day\n\nDay · Who helps\nMonday · Office team\n");
});
