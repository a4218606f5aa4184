import { expect, test } from "vitest";
import type { Facets } from "../api/types";
import { withChosenValues } from "./TestTarget";

test("chosen values that no document has can be removed", () => {
  const facets = {
    facets: [{ key: "topic", values: [{ value: "leave", documents: 2 }] }],
  } as unknown as Facets;

  expect(withChosenValues(facets, { topic: ["travel", "leave"], gone: [1] })).toEqual([
    {
      key: "topic",
      values: [
        { value: "travel", documents: null },
        { value: "leave", documents: 2 },
      ],
    },
    { key: "gone", values: [{ value: 1, documents: null }] },
  ]);
});
