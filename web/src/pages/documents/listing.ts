/** The listing of documents, read page by page as people scroll. The last one is kept, with its place, for the way back. */
import { useEffect, useMemo } from "react";
import { ApiError, type Client } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import { useApp } from "../../context";
import { locale } from "../../messages";
import { type Listed as ListedStatus, listedStatus } from "../../status";
import { Store, useStore } from "../../store";
import { forEach } from "./forEach";

/** The API lists documents by their path; the others sort what was loaded. */
export const SORTS = [
  "path",
  "-path",
  "name",
  "-name",
  "corpus",
  "-corpus",
  "-updated",
  "updated",
  "-size",
  "size",
] as const;
export type Sort = (typeof SORTS)[number];
export type SortColumn = Exclude<Sort, `-${string}`>;

/** So many documents are loaded to be sorted. */
export const SORTED_DOCUMENTS = 2000;

export interface Filters {
  /** Part of the key, or its beginning. */
  text: string;
  isPrefix: boolean;
  status: ListedStatus | null;
  corpus: string;
  sort: Sort;
}

export const NO_FILTERS: Filters = { text: "", isPrefix: false, status: null, corpus: "", sort: "path" };

export function sortOf(name: string | null): Sort {
  return SORTS.find((sort) => sort === name) ?? "path";
}

export function filtersOf(params: URLSearchParams): Filters {
  return {
    text: params.get("q") ?? "",
    isPrefix: params.get("match") === "start",
    status: listedStatus(params.get("status")),
    corpus: params.get("corpus") ?? "",
    sort: sortOf(params.get("sort")),
  };
}

/** Whether some documents may be left out. */
export function isNarrowed({ text, status, corpus }: Filters): boolean {
  return text !== "" || status !== null || corpus !== "";
}

/** The folder that the filters show, with its last slash; null if they look for a text. */
export function folderOf({ text, isPrefix }: Filters): string | null {
  if (text === "") return "";
  return isPrefix && text.endsWith("/") ? text : null;
}

/** The folders directly in a folder, with the number of documents below each. */
export function subfolders(
  rows: readonly DocumentSummary[],
  folder: string,
): [name: string, count: number][] {
  const found = new Map<string, number>();
  for (const { key } of rows) {
    if (!key.startsWith(folder)) continue;
    const end = key.indexOf("/", folder.length);
    if (end < 0) continue;
    const name = key.slice(folder.length, end);
    found.set(name, (found.get(name) ?? 0) + 1);
  }
  return [...found];
}

type Compare = (a: DocumentSummary, b: DocumentSummary) => number;

export function sorted(rows: readonly DocumentSummary[], sort: Sort): readonly DocumentSummary[] {
  if (sort === "path") return rows;
  if (sort === "-path") return [...rows].reverse();
  const sign = sort.startsWith("-") ? -1 : 1;
  const byText = new Intl.Collator(locale(), { numeric: true }).compare;
  const time = (row: DocumentSummary) => Date.parse(row.updated_at ?? "") || 0;
  const compare: Record<Exclude<SortColumn, "path">, Compare> = {
    name: (a, b) => byText(nameIn(a.key), nameIn(b.key)),
    corpus: (a, b) => byText(a.corpus ?? "", b.corpus ?? ""),
    size: (a, b) => (a.size ?? -1) - (b.size ?? -1),
    updated: (a, b) => time(a) - time(b),
  };
  const column = columnOf(sort) as keyof typeof compare;
  return [...rows].sort((a, b) => sign * compare[column](a, b));
}

function nameIn(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

export function columnOf(sort: Sort): SortColumn {
  return sort.replace(/^-/, "") as SortColumn;
}

/** The order that a click on the head of a column asks for: the other one, or at first the one that is wanted most. */
export function sortedBy(column: SortColumn, now: Sort): Sort {
  if (now === column) return `-${column}`;
  if (now === `-${column}`) return column;
  return column === "size" || column === "updated" ? `-${column}` : column;
}

export function paramsOf(filters: Filters): URLSearchParams {
  const params = new URLSearchParams();
  if (filters.text) params.set("q", filters.text);
  if (filters.isPrefix) params.set("match", "start");
  if (filters.status) params.set("status", filters.status);
  if (filters.corpus) params.set("corpus", filters.corpus);
  if (filters.sort !== "path") params.set("sort", filters.sort);
  return params;
}

interface Listed {
  rows: readonly DocumentSummary[];
  isLoading: boolean;
  isComplete: boolean;
  /** Whether it stopped because few of very many documents match. */
  isPaused: boolean;
  error: ApiError | null;
}

const PAGE = 100;
/** What a screen shows at once: the first rows are there earlier if few are sent with them. */
const FIRST_PAGE = 40;
const DELETION_TURNS = 12;
const NOTHING: Listed = {
  rows: [],
  isLoading: true,
  isComplete: false,
  isPaused: false,
  error: null,
};

/** A page that is not full although more follow is what 20,000 documents have: after so many, people decide. */
export const SPARSE_PAGES = 5;
export const DOCUMENTS_OF_A_SPARSE_PAGE = 20_000;

export class Listing extends Store<Listed> {
  /** Where the list is scrolled to. */
  offset = 0;
  /** The row that has the focus, or had it. */
  active = 0;
  /** Whether people left it for one of its documents. */
  isLeft = false;
  private token: string | null = null;
  private wanted = 0;
  private running: AbortController | null = null;

  constructor(
    private readonly client: Pick<Client, "get">,
    public filters: Filters,
  ) {
    super(NOTHING);
  }

  /** Load pages until there are so many rows, or all, or until few of very many documents match. */
  async load(rows: number): Promise<void> {
    this.wanted = Math.max(this.wanted, rows);
    if (this.running || this.snapshot().isPaused) return;
    const running = new AbortController();
    this.running = running;
    let sparse = 0;
    try {
      while (!this.snapshot().isComplete && this.snapshot().rows.length < this.wanted) {
        if (!this.snapshot().isLoading || this.snapshot().error)
          this.change({ isLoading: true, error: null });
        const limit = this.token === null ? FIRST_PAGE : PAGE;
        const page = await this.client.get(
          "/api/documents",
          {
            ...(this.filters.isPrefix ? { prefix: this.filters.text } : { name: this.filters.text }),
            status: this.filters.status,
            corpus: this.filters.corpus,
            limit,
            next_token: this.token,
          },
          running.signal,
        );
        if (running.signal.aborted) return;
        this.token = page.next_token ?? null;
        this.change({ rows: [...this.snapshot().rows, ...page.documents], isComplete: this.token === null });
        sparse = page.documents.length < limit ? sparse + 1 : 0;
        if (sparse === SPARSE_PAGES && this.token !== null) {
          this.wanted = 0;
          this.change({ isPaused: true });
        }
      }
      this.change({ isLoading: false });
    } catch (error) {
      if (running.signal.aborted) return;
      this.wanted = 0;
      this.change({ isLoading: false, error: ApiError.of(error) });
    } finally {
      if (this.running === running) this.running = null;
    }
  }

  /** Look at more documents after a pause. */
  goOn(): void {
    this.change({ isPaused: false });
    void this.load(this.snapshot().rows.length + PAGE);
  }

  /** Stop loading: people type on, or leave. */
  stop(): void {
    this.running?.abort();
    this.running = null;
    this.wanted = 0;
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

/** Show in the listing how deletions go on; one that cannot be read is read again in the next turn. */
export async function followDeletions(
  client: Pick<Client, "get">,
  documents: readonly Pick<DocumentSummary, "id" | "key">[],
): Promise<void> {
  let left = documents;
  for (let turn = 0; turn < DELETION_TURNS && left.length > 0; turn++) {
    await new Promise((done) => setTimeout(done, 1000 * (turn + 1)));
    const gone = new Set<string>();
    await forEach(left, async ({ id, key }) => {
      const found = (await client.get("/api/documents", { key })).documents[0];
      if (found && found.status !== "DELETED") return last?.replace(found);
      gone.add(id);
      last?.remove(id);
    });
    left = left.filter(({ id }) => !gone.has(id));
  }
}

/** What the API is asked for. */
function requestOf({ sort: _, ...asked }: Filters): string {
  return JSON.stringify(asked);
}

export function useListing(filters: Filters, turn: number): [Listing, Listed] {
  const { client } = useApp();
  const key = requestOf(filters);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the filters; a turn reads them again
  const listing = useMemo(() => {
    if (turn > 0 || last === null || requestOf(last.filters) !== key) last = new Listing(client, filters);
    return last;
  }, [client, key, turn]);
  listing.filters = filters; // another order is the same listing
  useEffect(() => {
    void listing.load(PAGE);
    return () => listing.stop();
  }, [listing]);
  return [listing, useStore(listing)];
}
