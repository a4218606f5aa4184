import { expect, it } from "vitest";
import { blocksOf } from "./reading";

it("finds headings, tables, lists and the text between them", () => {
  const text = [
    "# Rooms",
    "",
    "We have two.",
    "They are large.",
    "| Room | Seats |",
    "| --- | ---: |",
    "| Aare | 8 |",
    "| a \\| b | 12 |",
    "- one",
    "- two",
    "After.",
  ].join("\n");

  expect(blocksOf(text)).toEqual([
    { kind: "heading", level: 1, text: "Rooms" },
    { kind: "text", text: "We have two.\nThey are large." },
    {
      kind: "table",
      head: ["Room", "Seats"],
      rows: [
        ["Aare", "8"],
        ["a | b", "12"],
      ],
    },
    { kind: "list", items: ["one", "two"] },
    { kind: "text", text: "After." },
  ]);
});

it("leaves everything as text that only looks like structure", () => {
  for (const text of ["#hashtag", "| no rule below |\nand more", "<h1>Not HTML</h1>", "1 - 2"])
    expect(blocksOf(text)).toEqual([{ kind: "text", text }]);
  expect(blocksOf("\n\n")).toEqual([]);
});
