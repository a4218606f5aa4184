import { expect, test } from "vitest";
import { DEFAULTS } from "../../settings";
import { fromAddress, type SearchPlace, toAddress } from "./place";

test("an address replays both settings and the missing document", () => {
  const place: SearchPlace = {
    settings: { ...DEFAULTS, question: "سؤال & more?", corpus: "people", topK: 3 },
    other: {
      ...DEFAULTS,
      question: "سؤال & more?",
      facets: { year: [2026] },
      reranker: "lexical",
      infer: false,
    },
    missing: "documents/Zürich office guide + parking.md",
  };

  expect(fromAddress(new URLSearchParams(toAddress(place).toString()))).toEqual(place);
});

test("two equal settings are still two", () => {
  const settings = { ...DEFAULTS, question: "leave" };
  const place = { settings, other: settings, missing: "" };

  expect(toAddress(place).toString()).toBe("q=leave&compare=on");
  expect(fromAddress(toAddress(place))).toEqual(place);
});

test("an address of one search has no second one", () => {
  expect(fromAddress(new URLSearchParams("q=leave&b.k=3")).other).toBeNull();
});
