import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/client";
import { filtersOf, Listing, paramsOf } from "./listing";

const ALL = { text: "", isPrefix: false, status: null, corpus: "" };

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
    const filters = { text: "a&b=", isPrefix: true, status: "FAILED" as const, corpus: "übrige" };
    expect(filtersOf(new URLSearchParams(paramsOf(filters).toString()))).toEqual(filters);
    expect(paramsOf(ALL).toString()).toBe("");
  });
});
