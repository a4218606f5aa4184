import { describe, expect, it } from "vitest";
import type { Question } from "../../judgments";
import { DEFAULTS } from "../../settings";
import { compared, conclusion, measureAll } from "./measures";

const questions: Question[] = ["a", "b", "c", "d", "e", "f"].map((id) => ({
  id,
  text: id,
  grades: new Map([[`${id}.md`, 1]]),
  answer: null,
}));

/** Finds the document of each question, fails for some, and counts the requests that run at once. */
class Searches {
  running = 0;
  most = 0;
  asked: { query: string; top_k: number }[] = [];
  constructor(private readonly failing: readonly string[] = []) {}
  async post<T>(path: string, body: unknown): Promise<T> {
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.running -= 1;
    return (path === "/api/retrieve" ? this.search(body as Body) : measured(body as Judged)) as T;
  }
  private search(request: Body): unknown {
    this.asked.push(request);
    if (this.failing.includes(request.query)) throw new Error("too many requests");
    const results = [{ source: "other.md" }, { source: `${request.query}.md` }, { source: null }];
    return { results: request.rerank === false ? results : results.reverse(), complete: true };
  }
}

interface Body {
  query: string;
  top_k: number;
  rerank?: unknown;
}

interface Judged {
  documents: string[];
  grades: Record<string, number>;
}

/** 1 if the first document is relevant, as the interface would say. */
function measured({ documents, grades }: Judged): unknown {
  const ndcg = grades[documents[0] ?? ""] ?? 0;
  return { ndcg, recall: 1, reciprocal_rank: ndcg, judged: 1, shown: documents.length };
}

const ignore = () => undefined;
const live = () => new AbortController().signal;

describe("measuring", () => {
  it("runs at most four searches at once, ten documents deep", async () => {
    const searches = new Searches();
    const progress: number[] = [];

    const [run] = await measureAll(searches, questions, [DEFAULTS], (done) => progress.push(done), live());

    expect(searches.most).toBe(4);
    expect(new Set(searches.asked.map((each) => each.top_k))).toEqual(new Set([10]));
    expect(progress).toEqual([1, 2, 3, 4, 5, 6]);
    expect(run?.measured.map((each) => [each.question.id, each.ndcg, each.judged, each.shown])).toEqual(
      questions.map(({ id }) => [id, 1, 1, 2]),
    );
  });

  it("keeps the settings apart", async () => {
    const [a, b] = await measureAll(
      new Searches(),
      questions,
      [DEFAULTS, { ...DEFAULTS, reranker: "none" }],
      ignore,
      live(),
    );

    expect(a?.measured.every((each) => each.ndcg === 1)).toBe(true);
    expect(b?.measured.every((each) => each.ndcg === 0)).toBe(true);
  });

  it("leaves out a question whose search failed, and compares the others", async () => {
    const [a] = await measureAll(new Searches(["b"]), questions, [DEFAULTS], ignore, live());
    const [whole] = await measureAll(new Searches(), questions, [DEFAULTS], ignore, live());
    if (!a || !whole) throw new Error("no run");

    expect(a.failed.map(({ question, reason }) => [question.id, reason])).toEqual([
      ["b", "too many requests"],
    ]);
    expect(compared([whole, a]).map((row) => row.map(({ question }) => question.id))).toEqual(
      ["a", "c", "d", "e", "f"].map((id) => [id, id]),
    );
  });

  it("counts the questions on which other settings are better, and names no chance", async () => {
    const worse = { ...DEFAULTS, reranker: "none" } as const;
    const [a, b] = await measureAll(new Searches(), questions, [worse, DEFAULTS], ignore, live());
    if (!a || !b) throw new Error("no run");

    expect(conclusion(compared([a, b]))).toBe("B is better on 6, worse on 0 and equal on 0 of 6 questions.");
    expect(conclusion(compared([a, a]))).toBe("A and B are equally good on all 6 questions.");
  });

  it("stops when it is cancelled", async () => {
    const searches = new Searches();
    const abort = new AbortController();

    const run = measureAll(searches, questions, [DEFAULTS], () => abort.abort(), abort.signal);

    await expect(run).rejects.toThrow();
    expect(searches.asked).toHaveLength(4);
  });
});
