import { describe, expect, it } from "vitest";
import type { Question } from "../../judgments";
import { DEFAULTS } from "../../settings";
import { measure, paired } from "./measuring";

const questions: Question[] = ["a", "b", "c", "d", "e", "f"].map((id) => ({
  id,
  text: id,
  grades: new Map([[`${id}.md`, 1]]),
  answer: null,
}));

/** Finds the document of each question, fails for some, and counts the searches that run at once. */
class Searches {
  running = 0;
  most = 0;
  asked: { query: string; top_k: number; rerank?: unknown }[] = [];
  constructor(private readonly failing: readonly string[] = []) {}
  async post<T>(_path: string, body: unknown): Promise<T> {
    const request = body as { query: string; top_k: number; rerank?: unknown };
    this.asked.push(request);
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.running -= 1;
    if (this.failing.includes(request.query)) throw new Error("too many requests");
    const results = [{ source: "other.md" }, { source: `${request.query}.md` }];
    return { results: request.rerank === false ? results : results.reverse(), complete: true } as T;
  }
}

const ignore = () => undefined;
const live = () => new AbortController().signal;

describe("measuring", () => {
  it("runs at most four searches at once, ten documents deep", async () => {
    const searches = new Searches();
    const progress: number[] = [];

    const [run] = await measure(searches, questions, [DEFAULTS], (done) => progress.push(done), live());

    expect(searches.most).toBe(4);
    expect(new Set(searches.asked.map((each) => each.top_k))).toEqual(new Set([10]));
    expect(progress).toEqual([1, 2, 3, 4, 5, 6]);
    expect(run?.measured.map((each) => [each.question.id, each.ndcg, each.judged, each.of])).toEqual(
      questions.map(({ id }) => [id, 1, 1, 2]),
    );
  });

  it("keeps the settings apart", async () => {
    const [a, b] = await measure(
      new Searches(),
      questions,
      [DEFAULTS, { ...DEFAULTS, reranker: "none" }],
      ignore,
      live(),
    );

    expect(a?.measured.every((each) => each.reciprocalRank === 1)).toBe(true);
    expect(b?.measured.every((each) => each.reciprocalRank === 0.5)).toBe(true);
  });

  it("leaves out a question whose search failed, and compares the others", async () => {
    const [a] = await measure(new Searches(["b"]), questions, [DEFAULTS], ignore, live());
    const [whole] = await measure(new Searches(), questions, [DEFAULTS], ignore, live());
    if (!a || !whole) throw new Error("no run");

    expect(a.failed.map(({ question, reason }) => [question.id, reason])).toEqual([
      ["b", "too many requests"],
    ]);
    expect(paired([whole, a]).map((row) => row.map(({ question }) => question.id))).toEqual([
      ["a", "c", "d", "e", "f"],
      ["a", "c", "d", "e", "f"],
    ]);
  });

  it("stops when it is cancelled", async () => {
    const searches = new Searches();
    const abort = new AbortController();

    const run = measure(searches, questions, [DEFAULTS], () => abort.abort(), abort.signal);

    await expect(run).rejects.toThrow();
    expect(searches.asked).toHaveLength(4);
  });
});
