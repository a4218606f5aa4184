/** All documents: filters, and a table that holds only the rows in sight. */

import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import {
  Fragment,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import type { DocumentSummary } from "../../api/types";
import { useLoaded } from "../../context";
import { bytes, count as counted, time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { Select, TextField } from "../../parts/fields";
import { documentName, plain } from "../../parts/names";
import { Badge, Button, StatusBadge } from "../../parts/shapes";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { HeadRow } from "../../parts/Table";
import { useWaiting } from "../../parts/Undo";
import { address, go, usePlace } from "../../route";
import { isLacking, LISTED, listedStatus, meaning } from "../../status";
import {
  DOCUMENTS_OF_A_SPARSE_PAGE,
  type Filters,
  filtersOf,
  type Listing,
  paramsOf,
  SPARSE_PAGES,
  useListing,
} from "./listing";
import { isActive, useUploads } from "./uploads";

const ROW_PIXELS = 52;
/** On a phone: two lines of the name, and one of the folder and the status. */
const TALL_ROW_PIXELS = 88;
const PHONE = matchMedia("(max-width: 40rem)");
const ROWS_PER_PAGE_KEY = 10;
/** Rows below those in sight that are loaded before people reach them. */
const AHEAD = 300;
const TYPING_MILLISECONDS = 250;

export function List({ canWrite }: { canWrite: boolean }) {
  const { params } = usePlace();
  const filters = filtersOf(params);
  const [turn, setTurn] = useState(0);
  const [listing, { rows, isLoading, isComplete, isPaused, error }] = useListing(filters, turn);
  const announce = useAnnounce();
  const isUploading = useUploads().some(isActive);
  const [wasUploading, setWasUploading] = useState(isUploading);
  if (wasUploading !== isUploading) {
    setWasUploading(isUploading);
    if (!isUploading) setTurn(turn + 1);
  }
  const isFiltered = paramsOf(filters).size > 0;
  const retry = () => void listing.load(rows.length + 1);
  useEffect(() => {
    if (isFiltered && !isLoading && !error)
      announce(isComplete ? `${rows.length} documents found` : `More than ${rows.length} documents found`);
  }, [isFiltered, isLoading, isComplete, error, rows.length, announce]);
  return (
    <div className="stack list">
      <FilterForm filters={filters} onReload={() => setTurn(turn + 1)} />
      {rows.length > 0 && <Table listing={listing} rows={rows} isComplete={isComplete} />}
      {error && <ErrorBox error={error} onRetry={retry} />}
      {!error && rows.length === 0 && isLoading && <Loading what="the documents" />}
      {!error && rows.length === 0 && !isLoading && !isPaused && (
        <Nothing filters={filters} canWrite={canWrite} />
      )}
      {isPaused && <Paused listing={listing} isPrefix={filters.isPrefix} />}
      {rows.length > 0 && (
        <Count
          rows={rows.length}
          isFiltered={isFiltered}
          isLoading={isLoading}
          isComplete={isComplete || isPaused}
        />
      )}
    </div>
  );
}

function FilterForm({ filters, onReload }: { filters: Filters; onReload: () => void }) {
  const corpora = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  const [text, setText] = useState(filters.text);
  const set = useCallback(
    (change: Partial<Filters>) =>
      go(address("documents", paramsOf({ ...filters, ...change })), { replace: true }),
    [filters],
  );
  useEffect(() => setText(filters.text), [filters.text]);
  useEffect(() => {
    if (text === filters.text) return;
    const timer = setTimeout(() => set({ text }), TYPING_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text, filters.text, set]);
  const names = corpora.data?.corpora.map((each) => each.name) ?? [];
  return (
    <search className="row filters">
      <TextField
        label="Search by name or folder"
        isHidden
        className="grow"
        type="search"
        maxLength={200}
        placeholder="Search by name or folder"
        value={text}
        onChange={setText}
      />
      <Select
        label="Where the text is in the path"
        isHidden
        value={filters.isPrefix ? "start" : "part"}
        options={[
          ["part", "Anywhere in the path"],
          ["start", "Path begins with"],
        ]}
        onChange={(match) => set({ text, isPrefix: match === "start" })}
      />
      <Select
        label="Status"
        isHidden
        value={filters.status ?? ""}
        options={[["", "Any status"], ...LISTED.map((each) => [each, meaning(each).label] as const)]}
        onChange={(status) => set({ text, status: listedStatus(status) })}
      />
      <Select
        label="Collection"
        isHidden
        value={filters.corpus}
        options={[
          ["", "Any collection"],
          ...[...new Set([filters.corpus, ...names])].filter(Boolean).map((name) => [name, name] as const),
        ]}
        onChange={(corpus) => set({ text, corpus })}
      />
      <Button onClick={onReload}>Refresh</Button>
    </search>
  );
}

function Nothing({ filters, canWrite }: { filters: Filters; canWrite: boolean }) {
  if (paramsOf(filters).size > 0)
    return (
      <Empty title="No document matches">
        <p>
          {filters.text && (
            <>
              No path {filters.isPrefix ? "begins with" : "contains"} “<bdi>{filters.text}</bdi>”
              {(filters.status || filters.corpus) && " with these filters"}.{" "}
            </>
          )}
          A document that you may not see is not listed.
        </p>
        {filters.text && filters.isPrefix && (
          <a href={address("documents", paramsOf({ ...filters, isPrefix: false }))}>Search the whole path</a>
        )}
        <a href={address("documents")}>Show all documents</a>
      </Empty>
    );
  return (
    <Empty title="No documents yet">
      {canWrite ? (
        <>
          <p>Drop files or folders here, or choose them.</p>
          <a href={address("documents", { tab: "uploads" })}>Upload documents</a>
        </>
      ) : (
        <p>There is nothing that you may see. Ask an operator for access.</p>
      )}
    </Empty>
  );
}

/** The search stops before it has read all of very many documents, of which few match. */
function Paused({ listing, isPrefix }: { listing: Listing; isPrefix: boolean }) {
  return (
    <Notice kind="warning">
      The search stopped after about {(SPARSE_PAGES * DOCUMENTS_OF_A_SPARSE_PAGE).toLocaleString()} more
      documents, of which few match. {!isPrefix && "“Path begins with” finds a name at once. "}
      <Button onClick={() => listing.goOn()}>Search on</Button>
    </Notice>
  );
}

interface CountProps {
  rows: number;
  isFiltered: boolean;
  isLoading: boolean;
  isComplete: boolean;
}

function Count({ rows, isFiltered, isLoading, isComplete }: CountProps) {
  const facets = useLoaded("searchable", (client) => client.get("/api/facets", { limit: 1 }));
  const total = facets.data?.documents;
  const shown = counted(rows, "document");
  return (
    <p className="small count">
      {isComplete ? shown : `${shown} loaded; more follow as you scroll`}
      {!isFiltered && total !== undefined && ` · ${total.toLocaleString()} can be found by searches`}
      {isLoading && rows > 0 && (
        <>
          {" · "}
          <span className="spinner" aria-hidden="true" /> Loading
        </>
      )}
    </p>
  );
}

interface TableProps {
  listing: Listing;
  rows: readonly DocumentSummary[];
  isComplete: boolean;
}

function Table({ listing, rows, isComplete }: TableProps) {
  const scroller = useRef<HTMLElement>(null);
  const isPhone = useSyncExternalStore(onPhone, () => PHONE.matches);
  const height = isPhone ? TALL_ROW_PIXELS : ROW_PIXELS;
  const [active, setActive] = useState(0);
  const wanted = useRef<number | null>(null);
  const deleted = new Set(useWaiting().map((action) => action.id));
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 8,
    initialOffset: listing.offset,
    initialRect: { width: innerWidth, height: innerHeight }, // rows at once, before the list is measured
    // The row with the focus stays, so that the focus is not lost.
    rangeExtractor: (range) =>
      [...new Set([...defaultRangeExtractor(range), Math.min(active, rows.length - 1)])].sort(
        (a, b) => a - b,
      ),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: other rows are measured again
  useEffect(() => virtual.measure(), [height]);
  const items = virtual.getVirtualItems();
  const lastShown = virtual.range?.endIndex ?? 0;
  useEffect(() => {
    if (lastShown + AHEAD > rows.length) void listing.load(lastShown + AHEAD);
  }, [listing, lastShown, rows.length]);
  useEffect(() => {
    if (scroller.current) scroller.current.scrollTop = listing.offset;
    setActive(0);
  }, [listing]);
  useEffect(() => {
    if (wanted.current === null) return;
    const link = scroller.current?.querySelector<HTMLElement>(`a[data-row="${wanted.current}"]`);
    if (link) {
      link.focus({ preventScroll: true });
      wanted.current = null;
    }
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const next = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + ROWS_PER_PAGE_KEY,
      PageUp: active - ROWS_PER_PAGE_KEY,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const row = Math.max(0, Math.min(next, rows.length - 1));
    wanted.current = row;
    setActive(row);
    virtual.scrollToIndex(row);
  };
  let at = 0;
  const spaced = items.map((item) => {
    const gap = item.start - at;
    at = item.end;
    return { item, gap };
  });
  return (
    <section
      ref={scroller}
      className="documents"
      aria-label="Documents"
      onKeyDown={onKeyDown}
      onScroll={(event) => {
        listing.offset = event.currentTarget.scrollTop;
      }}
    >
      <table aria-rowcount={isComplete ? rows.length + 1 : -1}>
        <thead>
          <HeadRow
            index={1}
            columns={[
              ["Name"],
              ["Folder", "folder"],
              ["Status", "status"],
              ["Collection", "corpus"],
              ["Size", "size number"],
              ["Updated", "updated"],
            ]}
          />
        </thead>
        <tbody>
          {spaced.map(({ item, gap }) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <Fragment key={row.id}>
                {gap > 0 && <Gap height={gap} />}
                <Row
                  row={row}
                  number={item.index}
                  isActive={item.index === active}
                  isDeleted={deleted.has(row.id)}
                  onFocus={setActive}
                />
              </Fragment>
            );
          })}
          {virtual.getTotalSize() - at > 0 && <Gap height={virtual.getTotalSize() - at} />}
        </tbody>
      </table>
    </section>
  );
}

function onPhone(listener: () => void): () => void {
  PHONE.addEventListener("change", listener);
  return () => PHONE.removeEventListener("change", listener);
}

/** The rows out of sight. One cell: a cell for each column would keep room for columns that are hidden. */
function Gap({ height }: { height: number }) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it takes the focus
    <tr aria-hidden="true" className="gap">
      <td style={{ height }} />
    </tr>
  );
}

interface RowProps {
  row: DocumentSummary;
  number: number;
  isActive: boolean;
  isDeleted: boolean;
  onFocus: (number: number) => void;
}

const Row = memo(function Row({ row, number, isActive, isDeleted, onFocus }: RowProps) {
  const folder = plain(row.key.split("/").slice(0, -1).join("/"));
  const shownStatus = isDeleted ? (
    <Badge kind="warn">Will be deleted</Badge>
  ) : (
    <StatusBadge status={row.status} />
  );
  return (
    <tr aria-rowindex={number + 2} className={isDeleted ? "deleted" : undefined}>
      <td>
        <a
          href={address("documents", {}, row.id)}
          data-row={number}
          tabIndex={isActive ? 0 : -1}
          onFocus={() => onFocus(number)}
          title={plain(row.key)}
        >
          <bdi>{documentName(row.uri)}</bdi>
        </a>
        <span className="small below">
          <bdi className="inline-folder">{folder || "No folder"}</bdi>
          <span className="inline-status">{shownStatus}</span>
          {!isDeleted && isLacking(row.status) && row.reason && (
            <bdi className="reason" title={plain(row.reason)}>
              {plain(row.reason)}
            </bdi>
          )}
        </span>
      </td>
      <td className="folder" title={folder}>
        <bdi>{folder}</bdi>
      </td>
      <td className="status">{shownStatus}</td>
      <td className="corpus">
        <bdi>{row.corpus ?? ""}</bdi>
      </td>
      <td className="size number">{bytes(row.size)}</td>
      <td className="updated">{time(row.updated_at)}</td>
    </tr>
  );
});
