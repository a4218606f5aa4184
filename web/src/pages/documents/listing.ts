/** The listing of documents, read page by page as people scroll. The last one is kept, with its place, for the way back. */
import { useEffect, useMemo } from "react";
import { ApiError, type Client } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import { useApp } from "../../context";
import { type Listed as ListedStatus, listedStatus } from "../../status";
import { Store, useStore } from "../../store";

export interface Filters {
  /** Part of the key, or its beginning. */
  text: string;
  isPrefix: boolean;
  status: ListedStatus | null;
  corpus: string;
}

export function filtersOf(params: URLSearchParams): Filters {
  return {
    text: params.get("q") ?? "",
    isPrefix: params.get("match") === "start",
    status: listedStatus(params.get("status")),
    corpus: params.get("corpus") ?? "",
  };
}

export function paramsOf(filters: Filters): URLSearchParams {
  const params = new URLSearchParams();
  if (filters.text) params.set("q", filters.text);
  if (filters.isPrefix) params.set("match", "start");
  if (filters.status) params.set("status", filters.status);
  if (filters.corpus) params.set("corpus", filters.corpus);
  return params;
}

interface Listed {
  rows: readonly DocumentSummary[];
  isLoading: boolean;
  isComplete: boolean;
  error: ApiError | null;
}

const PAGE = 100;
const DELETION_TURNS = 12;
const NOTHING: Listed = { rows: [], isLoading: true, isComplete: false, error: null };

export class Listing extends Store<Listed> {
  /** Where the list is scrolled to. */
  offset = 0;
  private token: string | null = null;
  private wanted = 0;
  private isRunning = false;

  constructor(
    private readonly client: Pick<Client, "get">,
    readonly filters: Filters,
  ) {
    super(NOTHING);
  }

  /** Load pages until there are so many rows, or all. */
  async load(rows: number): Promise<void> {
    this.wanted = Math.max(this.wanted, rows);
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      while (!this.snapshot().isComplete && this.snapshot().rows.length < this.wanted) {
        if (!this.snapshot().isLoading || this.snapshot().error)
          this.change({ isLoading: true, error: null });
        const page = await this.client.get("/api/documents", {
          ...(this.filters.isPrefix ? { prefix: this.filters.text } : { name: this.filters.text }),
          status: this.filters.status,
          corpus: this.filters.corpus,
          limit: PAGE,
          next_token: this.token,
        });
        this.token = page.next_token ?? null;
        this.change({ rows: [...this.snapshot().rows, ...page.documents], isComplete: this.token === null });
      }
      this.change({ isLoading: false });
    } catch (error) {
      const known = ApiError.of(error);
      this.wanted = 0;
      this.change({ isLoading: false, error: known });
    } finally {
      this.isRunning = false;
    }
  }

  /** Show what a request about one document said. */
  replace(document: DocumentSummary): void {
    const at = this.snapshot().rows.findIndex((row) => row.id === document.id);
    if (at >= 0)
      this.change({ rows: this.snapshot().rows.map((row, number) => (number === at ? document : row)) });
  }

  remove(id: string): void {
    this.change({ rows: this.snapshot().rows.filter((row) => row.id !== id) });
  }

  private change(change: Partial<Listed>): void {
    this.set({ ...this.snapshot(), ...change });
  }
}

let last: Listing | null = null;

/** The listing that was shown last, for news about one of its documents. */
export function lastListing(): Listing | null {
  return last;
}

/** Read the listing again when it is shown next: something may have changed. */
export function forgetListing(): void {
  last = null;
}

/** Show in the listing how a document's deletion goes on. */
export async function followDeletion(client: Client, id: string, key: string): Promise<void> {
  for (let turn = 0; turn < DELETION_TURNS; turn++) {
    await new Promise((done) => setTimeout(done, 1000 * (turn + 1)));
    const found = (await client.get("/api/documents", { key })).documents[0];
    if (!found || found.status === "DELETED") return last?.remove(id);
    last?.replace(found);
  }
}

export function useListing(filters: Filters, turn: number): [Listing, Listed] {
  const { client } = useApp();
  const key = JSON.stringify(filters);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the filters; a turn reads them again
  const listing = useMemo(() => {
    if (turn > 0 || last === null || JSON.stringify(last.filters) !== key)
      last = new Listing(client, filters);
    return last;
  }, [client, key, turn]);
  useEffect(() => void listing.load(PAGE), [listing]);
  return [listing, useStore(listing)];
}
