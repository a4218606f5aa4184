import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import {
  type Filters,
  filtersOf,
  folderOf,
  followDeletions,
  Listing,
  NO_FILTERS,
  paramsOf,
  SORTS,
  SPARSE_PAGES,
  sorted,
  sortedBy,
  subfolders,
} from "./listing";

const ALL = NO_FILTERS;

/** Answers with pages of three documents. */
class Pages {
  requests: Record<string, unknown>[] = [];
  constructor(
    readonly pages: number,
    public failing = false,
  ) {}

  async get<T>(_: string, query: Record<string, unknown> = {}): Promise<T> {
    this.requests.push(query);
    if (this.failing) throw new ApiError("The server does not answer", 0, "Unreachable");
    const page = Number(query.next_token ?? 0);
    const documents = [0, 1, 2].map((number) => ({ id: `${page * 3 + number}` }));
    return { documents, next_token: page + 1 < this.pages ? `${page + 1}` : null } as T;
  }
}

describe("the listing", () => {
  it("loads as many pages as are needed", async () => {
    const pages = new Pages(5);
    const listing = new Listing(pages, ALL);
    await listing.load(4);
    expect(listing.snapshot().rows.map((row) => row.id)).toEqual(["0", "1", "2", "3", "4", "5"]);
    await Promise.all([listing.load(100), listing.load(7)]);
    expect(listing.snapshot()).toMatchObject({ isComplete: true, isLoading: false });
    expect(pages.requests.length).toBe(5);
  });

  it("keeps its rows when a page fails, and goes on from there", async () => {
    const pages = new Pages(3);
    const listing = new Listing(pages, ALL);
    await listing.load(1);
    pages.failing = true;
    await listing.load(6);
    expect(listing.snapshot().error?.isOffline).toBe(true);
    expect(listing.snapshot().rows.length).toBe(3);
    pages.failing = false;
    await listing.load(6);
    expect(listing.snapshot().rows.length).toBe(6);
    expect(listing.snapshot().error).toBeNull();
  });

  it("stops when it is left, and goes on when it is shown again", async () => {
    const signals: AbortSignal[] = [];
    const pages = new Pages(3);
    const slow = {
      get: async (path: string, query: Record<string, unknown>, signal: AbortSignal) => {
        signals.push(signal);
        const page = await pages.get(path, query);
        if (signal.aborted) throw new DOMException("aborted", "AbortError");
        return page;
      },
    };
    const listing = new Listing(slow as never, ALL);
    const first = listing.load(9);
    listing.stop();
    const second = listing.load(9);
    await Promise.all([first, second]);
    expect(signals[0]?.aborted).toBe(true);
    expect(listing.snapshot()).toMatchObject({ isComplete: true, isLoading: false, error: null });
    expect(listing.snapshot().rows.map((row) => row.id)).toEqual([
      "0",
      "1",
      "2",
      "3",
      "4",
      "5",
      "6",
      "7",
      "8",
    ]);
  });

  it("asks before it reads all of very many documents, of which few match", async () => {
    const pages = new Pages(3 * SPARSE_PAGES);
    const listing = new Listing(pages, { ...ALL, text: "rare" });
    await listing.load(100);
    await listing.load(400);
    expect(listing.snapshot()).toMatchObject({ isPaused: true, isLoading: false, isComplete: false });
    expect(pages.requests.length).toBe(SPARSE_PAGES);
    listing.goOn();
    await new Promise((done) => setTimeout(done));
    expect(pages.requests.length).toBe(2 * SPARSE_PAGES);
    expect(listing.snapshot().rows.length).toBe(6 * SPARSE_PAGES);
  });

  it("asks for parts of names, or for their beginning", async () => {
    const pages = new Pages(1);
    await new Listing(pages, { ...ALL, text: "a" }).load(1);
    await new Listing(pages, { ...ALL, text: "a", isPrefix: true }).load(1);
    expect(pages.requests.map(({ name, prefix }) => [name, prefix])).toEqual([
      ["a", undefined],
      [undefined, "a"],
    ]);
  });

  it("has its filters in the address", () => {
    const filters = {
      text: "a&b=",
      isPrefix: true,
      status: "FAILED" as const,
      corpus: "übrige",
      sort: "-size" as const,
    };
    expect(filtersOf(new URLSearchParams(paramsOf(filters).toString()))).toEqual(filters);
    expect(paramsOf(ALL).toString()).toBe("");
  });

  it("sorts by every column in both directions", () => {
    const rows = [
      { id: "a", key: "1/plan 10.md", corpus: "law", size: 5, updated_at: "2026-01-02T00:00:00Z" },
      { id: "b", key: "2/plan 9.md", corpus: null, size: null, updated_at: null },
      { id: "c", key: "3/Über.md", corpus: "hr", size: 9, updated_at: "2026-01-03T00:00:00Z" },
    ] as DocumentSummary[];
    const ids = (sort: Filters["sort"]) =>
      sorted(rows, sort)
        .map((row) => row.id)
        .join("");

    expect(Object.fromEntries(SORTS.map((sort) => [sort, ids(sort)]))).toEqual({
      path: "abc",
      "-path": "cba",
      name: "bac",
      "-name": "cab",
      corpus: "bca",
      "-corpus": "acb",
      updated: "bac",
      "-updated": "cab",
      size: "bac",
      "-size": "cab",
    });
  });

  it("sorts by a column at first as people want it most, and then the other way", () => {
    expect(sortedBy("name", "path")).toBe("name");
    expect(sortedBy("name", "name")).toBe("-name");
    expect(sortedBy("name", "-name")).toBe("name");
    expect(sortedBy("updated", "name")).toBe("-updated");
    expect(sortedBy("path", "path")).toBe("-path");
  });

  it("has the folders that are directly in a folder", () => {
    const rows = ["x.md", "a/x.md", "a/b/x.md", "a/b/y.md", "a/c/d/x.md", "ab/x.md"].map((key) => ({ key }));

    expect(subfolders(rows as DocumentSummary[], "")).toEqual([
      ["a", 4],
      ["ab", 1],
    ]);
    expect(subfolders(rows as DocumentSummary[], "a/")).toEqual([
      ["b", 2],
      ["c", 1],
    ]);
    expect(
      [{ text: "a/", isPrefix: true }, { text: "a/" }, { text: "a", isPrefix: true }, {}].map((each) =>
        folderOf({ ...ALL, ...each }),
      ),
    ).toEqual(["a/", null, null, ""]);
  });
});

describe("followDeletions", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("asks for a few of many documents at once, and again for those that are still there", async () => {
    const asked: string[] = [];
    let atOnce = 0;
    let most = 0;
    const get = async (_path: string, { key }: { key: string }) => {
      const isFirst = !asked.includes(key);
      asked.push(key);
      atOnce += 1;
      most = Math.max(most, atOnce);
      await Promise.resolve();
      atOnce -= 1;
      if (key === "1" && isFirst) throw new ApiError("busy", 503, "ServiceUnavailable");
      return { documents: key === "2" && isFirst ? [{ id: key, key, status: "DELETING" }] : [] };
    };
    const documents = Array.from({ length: 50 }, (_, number) => ({ id: `${number}`, key: `${number}` }));

    const following = followDeletions({ get } as never, documents);
    await vi.runAllTimersAsync();
    await following;

    expect(most).toBe(4);
    expect(asked.slice(50).sort()).toEqual(["1", "2"]);
  });
});
