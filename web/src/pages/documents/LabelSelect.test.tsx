import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { LabelSelect } from "./LabelSelect";

test.each([
  ["people", "", ["people (default)", "handbook"], "people (default)"],
  ["people", "handbook", ["people (default)", "handbook"], "handbook"],
  ["people", "people", ["people (default)", "handbook"], "people (default)"],
  ["people", "board", ["people (default)", "board", "handbook"], "board"],
  [null, "", ["Choose …", "handbook", "people"], "Choose …"],
])("with the default %s and the label “%s”, %o are offered", (usual, value, offered, chosen) => {
  const shown = renderToStaticMarkup(
    <LabelSelect
      prefix={{ prefix: "people/", default: usual, labels: ["handbook", "people"] }}
      value={value}
      onChange={() => undefined}
    />,
  );

  expect([...shown.matchAll(/<option[^>]*>([^<]*)/g)].map((option) => option[1])).toEqual(offered);
  expect(/<option[^>]* selected[^>]*>([^<]*)/.exec(shown)?.[1]).toBe(chosen);
});
