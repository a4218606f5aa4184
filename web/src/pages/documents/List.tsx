/** All documents: filters, folders, a selection, and a table that holds only the rows in sight. */

import { useCallback, useEffect, useMemo, useState } from "react";
import type { DocumentSummary } from "../../api/types";
import { useLoaded } from "../../context";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Select, TextField } from "../../parts/fields";
import { Icon } from "../../parts/Icon";
import { plain } from "../../parts/names";
import { Button, IconButton, Skeleton } from "../../parts/shapes";
import { Empty, ErrorBox, Notice } from "../../parts/states";
import { address, go, usePlace } from "../../route";
import { LISTED, listedStatus, meaning } from "../../status";
import {
  DOCUMENTS_OF_A_SPARSE_PAGE,
  type Filters,
  filtersOf,
  folderOf,
  isNarrowed,
  type Listing,
  NO_FILTERS,
  paramsOf,
  SORTED_DOCUMENTS,
  SORTS,
  type Sort,
  SPARSE_PAGES,
  sorted,
  sortOf,
  subfolders,
  useListing,
} from "./listing";
import { Preview } from "./Preview";
import { useRemoved } from "./removal";
import { Selection } from "./Selection";
import { focusList, Table } from "./Table";
import { isActive, useUploads } from "./uploads";

const TYPING_MILLISECONDS = 250;

export function List({ canWrite }: { canWrite: boolean }) {
  const text = useMessages("documents");
  const { params } = usePlace();
  const filters = filtersOf(params);
  const [turn, setTurn] = useState(0);
  const [listing, { rows: found, isLoading, isComplete, isPaused, error }] = useListing(filters, turn);
  const rows = useMemo(() => sorted(found, filters.sort), [found, filters.sort]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState<DocumentSummary | null>(null);
  const announce = useAnnounce();
  const isUploading = useUploads().some(isActive);
  const [wasUploading, setWasUploading] = useState(isUploading);
  if (wasUploading !== isUploading) {
    setWasUploading(isUploading);
    if (!isUploading) setTurn(turn + 1);
  }
  const isFiltered = isNarrowed(filters);
  const isSorted = filters.sort !== "path";
  const sortBy = (sort: Sort) => go(address("documents", paramsOf({ ...filters, sort })), { replace: true });
  const retry = () => void listing.load(rows.length + 1);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another listing has other documents
  useEffect(() => setSelected(new Set()), [listing]);
  useEffect(() => {
    if (isSorted) void listing.load(SORTED_DOCUMENTS);
  }, [isSorted, listing]);
  useEffect(() => {
    if (isFiltered && !isLoading && !error) announce((isComplete ? text.found : text.foundMore)(rows.length));
  }, [isFiltered, isLoading, isComplete, error, rows.length, announce, text]);
  const toggle = useCallback(
    (id: string) =>
      setSelected((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    [],
  );
  const removed = useRemoved();
  const chosen = rows.filter((row) => selected.has(row.id) && !removed.has(row.id));
  return (
    <div className="stack list">
      <FilterForm filters={filters} onReload={() => setTurn(turn + 1)} />
      <Folders filters={filters} rows={rows} isComplete={isComplete} />
      {rows.length > 0 && (
        <div className="row spread list-head">
          {chosen.length > 0 ? (
            <Selection
              rows={chosen}
              canWrite={canWrite}
              onClear={() => {
                setSelected(new Set());
                focusList();
              }}
              onChanged={() => setTurn((before) => before + 1)}
            />
          ) : (
            <Count
              rows={rows.length}
              isFiltered={isFiltered}
              isLoading={isLoading}
              isComplete={isComplete || isPaused}
            />
          )}
          <Select
            label={text.sortBy}
            isHidden
            value={filters.sort}
            options={SORTS.map((sort) => [sort, text.sorts[sort]] as const)}
            onChange={(sort) => sortBy(sortOf(sort))}
          />
        </div>
      )}
      {isSorted && !isComplete && !isLoading && rows.length > 0 && (
        <Notice>{text.sortedSome(rows.length)}</Notice>
      )}
      {rows.length > 0 && (
        <>
          <Table
            listing={listing}
            rows={rows}
            isComplete={isComplete}
            sort={filters.sort}
            onSort={sortBy}
            selected={selected}
            onSelect={toggle}
            onSelectAll={(isAll) => setSelected(new Set(isAll ? rows.map((row) => row.id) : []))}
            onPreview={setShown}
          />
          <p className="small keys">{text.keys}</p>
        </>
      )}
      {error && <ErrorBox error={error} onRetry={retry} />}
      {!error && rows.length === 0 && isLoading && (
        <div className="card loading" aria-busy="true">
          <Skeleton lines={8} />
        </div>
      )}
      {!error && rows.length === 0 && !isLoading && !isPaused && (
        <Nothing filters={filters} canWrite={canWrite} />
      )}
      {isPaused && <Paused listing={listing} isPrefix={filters.isPrefix} />}
      {shown && <Preview document={shown} onClose={() => setShown(null)} />}
    </div>
  );
}

function FilterForm({ filters, onReload }: { filters: Filters; onReload: () => void }) {
  const messages = useMessages("documents");
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
        label={messages.filterText}
        isHidden
        className="grow"
        type="search"
        maxLength={200}
        placeholder={messages.filterText}
        value={text}
        onChange={setText}
      />
      <Select
        label={messages.filterMatch}
        isHidden
        value={filters.isPrefix ? "start" : "part"}
        options={[
          ["part", messages.anywhere],
          ["start", messages.beginning],
        ]}
        onChange={(match) => set({ text, isPrefix: match === "start" })}
      />
      <Select
        label={messages.status}
        isHidden
        value={filters.status ?? ""}
        options={[["", messages.anyStatus], ...LISTED.map((each) => [each, meaning(each).label] as const)]}
        onChange={(status) => set({ text, status: listedStatus(status) })}
      />
      <Select
        label={messages.collection}
        isHidden
        value={filters.corpus}
        options={[
          ["", messages.anyCollection],
          ...[...new Set([filters.corpus, ...names])]
            .filter(Boolean)
            .map((name) => [name, plain(name)] as const),
        ]}
        onChange={(corpus) => set({ text, corpus })}
      />
      <IconButton icon="retry" label={messages.refresh} onClick={onReload} />
    </search>
  );
}

const SHOWN_FOLDERS = 12;

/** The folder that is shown with those above it, and the folders in it. */
function Folders({
  filters,
  rows,
  isComplete,
}: {
  filters: Filters;
  rows: readonly DocumentSummary[];
  isComplete: boolean;
}) {
  const text = useMessages("documents");
  const here = folderOf(filters);
  if (here === null) return null;
  const inside = subfolders(rows, here).slice(0, SHOWN_FOLDERS);
  const parents = here.split("/").slice(0, -1);
  if (inside.length === 0 && parents.length === 0) return null;
  const to = (folder: string) =>
    address("documents", paramsOf({ ...filters, text: folder, isPrefix: folder !== "" }));
  return (
    <nav className="row folders" aria-label={text.folders}>
      {parents.length > 0 && (
        <ol className="row crumbs">
          <li>
            <a href={to("")}>{text.allFolders}</a>
          </li>
          {parents.map((name, index) => (
            <li key={index}>
              <Icon name="right" size={14} />
              <a
                href={to(`${parents.slice(0, index + 1).join("/")}/`)}
                aria-current={index === parents.length - 1 ? "location" : undefined}
              >
                <bdi>{plain(name)}</bdi>
              </a>
            </li>
          ))}
        </ol>
      )}
      {inside.length > 0 && (
        <ul className="row" aria-label={text.foldersHere}>
          {inside.map(([name, count]) => (
            <li key={name}>
              <a className="chip" href={to(`${here}${name}/`)}>
                <Icon name="folder" size={14} />
                <bdi>{plain(name)}</bdi>
                {isComplete && <span className="small">{count}</span>}
              </a>
            </li>
          ))}
        </ul>
      )}
    </nav>
  );
}

function Nothing({ filters, canWrite }: { filters: Filters; canWrite: boolean }) {
  const text = useMessages("documents");
  if (isNarrowed(filters))
    return (
      <Empty title={text.noMatch} icon="search">
        <p>
          {filters.text && (
            <>
              {filters.isPrefix ? text.noMatchStart : text.noMatchPart} “<bdi>{plain(filters.text)}</bdi>”
              {(filters.status || filters.corpus) && text.withFilters}.{" "}
            </>
          )}
          {text.notListed}
        </p>
        {filters.text && filters.isPrefix && (
          <a href={address("documents", paramsOf({ ...filters, isPrefix: false }))}>{text.wholePath}</a>
        )}
        <a href={address("documents", paramsOf({ ...NO_FILTERS, sort: filters.sort }))}>{text.showAll}</a>
      </Empty>
    );
  return (
    <Empty title={text.nothingYet} icon="documents">
      {canWrite ? (
        <>
          <p>{text.dropHere}</p>
          <a href={address("documents", { tab: "uploads" })}>{text.uploadDocuments}</a>
        </>
      ) : (
        <p>{text.nothingToSee}</p>
      )}
    </Empty>
  );
}

/** The search stops before it has read all of very many documents, of which few match. */
function Paused({ listing, isPrefix }: { listing: Listing; isPrefix: boolean }) {
  const text = useMessages("documents");
  return (
    <Notice kind="warning">
      {text.paused(SPARSE_PAGES * DOCUMENTS_OF_A_SPARSE_PAGE)} {!isPrefix && `${text.pausedHint} `}
      <Button onClick={() => listing.goOn()}>{text.searchOn}</Button>
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
  const text = useMessages("documents");
  const facets = useLoaded("searchable", (client) => client.get("/api/facets", { limit: 1 }));
  const total = facets.data?.documents;
  return (
    <p className="small count">
      {(isComplete ? text.shown : text.shownSome)(rows)}
      {/* Not on narrow screens, where another line would move the list. */}
      <span className="count-more">
        {!isComplete && ` · ${text.moreFollow}`}
        {!isFiltered && total !== undefined && ` · ${text.searchable(total)}`}
        {isLoading && rows > 0 && (
          <>
            {" · "}
            <span className="spinner" aria-hidden="true" /> {text.loading}
          </>
        )}
      </span>
    </p>
  );
}
