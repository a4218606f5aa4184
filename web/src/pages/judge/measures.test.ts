import { describe, expect, it } from "vitest";
import examples from "./examples.json";
import {
  conclusion,
  difference,
  figure,
  hasRelevant,
  interval,
  judged,
  ndcg,
  recall,
  reciprocalRank,
} from "./measures";

const grades = (given: object): Map<string, number> => new Map(Object.entries(given));

describe("measures", () => {
  it.each(examples)("are those of ragstack eval: $name", (example) => {
    const given = grades(example.grades);

    expect(ndcg(example.ranking, given)).toBeCloseTo(example["nDCG@10"], 8);
    expect(recall(example.ranking, given)).toBeCloseTo(example["R@10"], 8);
    expect(reciprocalRank(example.ranking, given)).toBeCloseTo(example["RR@10"], 8);
  });

  it("count a document once, at its best rank", () => {
    expect(ndcg(["a", "a", "b"], grades({ a: 1, b: 1 }))).toBe(1);
    expect(reciprocalRank(["x", "x", "a"], grades({ a: 1 }))).toBe(0.5);
  });

  it("count what was judged among the first ten", () => {
    const eleven = Array.from({ length: 11 }, (_, place) => `d${place}`);

    expect(judged(eleven, grades({ d0: 0, d10: 3 }))).toEqual({ judged: 1, of: 10 });
  });

  it("leave out questions without a relevant document", () => {
    expect([hasRelevant(undefined), hasRelevant(grades({ a: 0 })), hasRelevant(grades({ a: 1 }))]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe("intervals", () => {
  it("are the same for the same values", () => {
    expect(interval([0.1, 0.5, 0.9, 0.4])).toEqual(interval([0.1, 0.5, 0.9, 0.4]));
  });

  it("of many values are those of a normal mean", () => {
    const values = Array.from({ length: 400 }, (_, place) => (place % 2 === 0 ? 0 : 1));

    const { mean, low, high } = interval(values);

    expect(mean).toBe(0.5);
    expect(low).toBeCloseTo(0.5 - 1.96 * 0.025, 2);
    expect(high).toBeCloseTo(0.5 + 1.96 * 0.025, 2);
  });

  it("of a difference compare each question with itself", () => {
    const gain = difference([0.1, 0.5, 0.9], [0.2, 0.6, 1.0]);

    expect(gain.mean).toBeCloseTo(0.1, 10);
    expect(gain.high - gain.low).toBeCloseTo(0, 10);
  });
});

describe("the conclusion", () => {
  it("says that a difference may be chance if its interval has 0", () => {
    expect(conclusion({ mean: 0.03, low: -0.01, high: 0.07 }, 12)).toBe(
      "B is better by .030; with 12 questions this may be chance.",
    );
  });

  it("says that a difference is unlikely to be chance otherwise", () => {
    expect(conclusion({ mean: -0.2, low: -0.3, high: -0.1 }, 40)).toBe(
      "A is better by .20; with 40 questions this is unlikely to be chance.",
    );
  });

  it("concludes little from few questions, whatever the interval", () => {
    expect(conclusion({ mean: 0.2, low: 0.1, high: 0.3 }, 1)).toBe(
      "B is better by .20; with 1 question this says little. Judge at least 10 questions.",
    );
  });

  it("calls equal what is equal", () => {
    expect(conclusion({ mean: 0, low: 0, high: 0 }, 12)).toBe("A and B are equally good on 12 questions.");
    expect(conclusion({ mean: 0, low: -0.1, high: 0.1 }, 12)).toContain("equally good on average");
  });
});

it("figures show the digits that matter", () => {
  expect([1, 0.825, 0.03, 0, -0.25].map(figure)).toEqual(["1.00", ".82", ".030", ".000", "-.25"]);
});
