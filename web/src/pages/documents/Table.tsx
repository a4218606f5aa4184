/** The rows of the list: a table on wide screens, cards on narrow ones. Only those in sight are in the page. */

import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import {
  Fragment,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { DocumentSummary } from "../../api/types";
import { ago, bytes, time } from "../../format";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { documentName, plain } from "../../parts/names";
import { Badge, Button, StatusBadge } from "../../parts/shapes";
import { HeadRow, type Sorted } from "../../parts/Table";
import { address } from "../../route";
import { isLacking } from "../../status";
import { iconOf } from "./files";
import { columnOf, type Listing, type Sort, type SortColumn, sortedBy } from "./listing";
import { useRemoved } from "./removal";

/** Height of a row, and the width from which a layout fits. */
const LAYOUTS = [
  { name: "wide", row: 40, from: 950 },
  { name: "middle", row: 58, from: 560 },
  { name: "compact", row: 76, from: 0 },
] as const;
type Layout = (typeof LAYOUTS)[number];
const ROWS_PER_PAGE_KEY = 10;
/** Rows below those in sight that are loaded before people reach them. */
const AHEAD = 300;

/** Give the focus to the row that had it last, or to the page. */
export function focusList(): void {
  setTimeout(() => {
    const row = document.querySelector<HTMLElement>(".documents a[tabindex='0']");
    (row ?? document.getElementById("main"))?.focus({ preventScroll: true });
  });
}

interface Props {
  listing: Listing;
  rows: readonly DocumentSummary[];
  isComplete: boolean;
  sort: Sort;
  onSort: (sort: Sort) => void;
  selected: ReadonlySet<string>;
  onSelect: (id: string) => void;
  onSelectAll: (isAll: boolean) => void;
  onPreview: (document: DocumentSummary) => void;
}

export function Table(props: Props) {
  const { listing, rows, isComplete, sort, onSort, selected, onSelect, onSelectAll, onPreview } = props;
  const text = useMessages("documents");
  const scroller = useRef<HTMLElement>(null);
  const layout = useLayout(scroller);
  const [active, setShownActive] = useState(listing.active);
  const wanted = useRef<number | null>(null);
  const deleted = useRemoved();
  const setActive = useCallback(
    (row: number) => {
      listing.active = row;
      setShownActive(row);
    },
    [listing],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => layout.row,
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
  useEffect(() => virtual.measure(), [layout]);
  const items = virtual.getVirtualItems();
  const lastShown = virtual.range?.endIndex ?? 0;
  useEffect(() => {
    if (lastShown + AHEAD > rows.length) void listing.load(lastShown + AHEAD);
  }, [listing, lastShown, rows.length]);
  useEffect(() => {
    if (scroller.current) scroller.current.scrollTop = listing.offset;
    setShownActive(listing.active);
    // On the way back from a document, the keyboard is where it was.
    if (listing.isLeft && document.activeElement === document.body) focusList();
    listing.isLeft = false;
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
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const isLink = event.target instanceof HTMLAnchorElement;
    const row = rows[active];
    if (isLink && row && (event.key === " " || event.key === "x")) {
      event.preventDefault();
      if (event.key === " ") onPreview(row);
      else onSelect(row.id);
      return;
    }
    const next = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + ROWS_PER_PAGE_KEY,
      PageUp: active - ROWS_PER_PAGE_KEY,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const at = Math.max(0, Math.min(next, rows.length - 1));
    wanted.current = at;
    setActive(at);
    virtual.scrollToIndex(at);
  };
  let at = 0;
  const spaced = items.map((item) => {
    const gap = item.start - at;
    at = item.end;
    return { item, gap };
  });
  const head = (column: SortColumn, title: string, className: string) => {
    const sorted: Sorted =
      columnOf(sort) !== column ? undefined : sort === column ? "ascending" : "descending";
    const order = (
      <Button key={column} kind="quiet" className="sort" onClick={() => onSort(sortedBy(column, sort))}>
        {title}
        <Icon name={sorted === "descending" ? "down" : "up"} size={14} />
      </Button>
    );
    return [order, className, sorted] as const;
  };
  const isAll = selected.size > 0 && selected.size === rows.length;
  return (
    <section
      ref={scroller}
      className={`documents ${layout.name}`}
      aria-label={text.title}
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
              [
                <input
                  key="all"
                  type="checkbox"
                  aria-label={text.selectAll}
                  title={text.selectAll}
                  checked={isAll}
                  ref={(input) => {
                    if (input) input.indeterminate = selected.size > 0 && !isAll;
                  }}
                  onChange={() => onSelectAll(!isAll)}
                />,
                "select",
              ],
              head("name", text.name, ""),
              head("path", text.folder, "folder"),
              head("corpus", text.collection, "corpus"),
              head("size", text.size, "size number"),
              head("updated", text.updated, "updated"),
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
                  height={layout.row}
                  isActive={item.index === active}
                  isDeleted={deleted.has(row.id)}
                  isSelected={selected.has(row.id)}
                  onFocus={setActive}
                  onSelect={onSelect}
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

/** The layout that fits the width of the list, which the sidebar changes too. */
function useLayout(scroller: React.RefObject<HTMLElement | null>): Layout {
  const [layout, setLayout] = useState<Layout>(() => fitting(innerWidth - (innerWidth < 1024 ? 32 : 300)));
  useLayoutEffect(() => {
    const list = scroller.current;
    if (!list) return;
    const observer = new ResizeObserver(() => setLayout(fitting(list.clientWidth)));
    observer.observe(list);
    setLayout(fitting(list.clientWidth));
    return () => observer.disconnect();
  }, [scroller]);
  return layout;
}

function fitting(width: number): Layout {
  return LAYOUTS.find(({ from }) => width >= from) ?? LAYOUTS[2];
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
  height: number;
  isActive: boolean;
  isDeleted: boolean;
  isSelected: boolean;
  onFocus: (number: number) => void;
  onSelect: (id: string) => void;
}

const Row = memo(function Row(props: RowProps) {
  const { row, number, height, isActive, isDeleted, isSelected, onFocus, onSelect } = props;
  const text = useMessages("documents");
  const folder = plain(row.key.split("/").slice(0, -1).join("/"));
  const name = documentName(row.uri);
  const updated = <time title={time(row.updated_at)}>{ago(row.updated_at)}</time>;
  return (
    <tr
      aria-rowindex={number + 2}
      className={`${isDeleted ? "deleted" : ""} ${isSelected ? "selected" : ""}`}
    >
      <td className="select" style={{ height }}>
        <input
          type="checkbox"
          aria-label={text.select(name)}
          tabIndex={isActive ? 0 : -1}
          checked={isSelected}
          onChange={() => onSelect(row.id)}
        />
      </td>
      <td className="name">
        <div className="document-cell">
          <Icon name={iconOf(row.key)} />
          <a
            href={address("documents", {}, row.id)}
            data-row={number}
            tabIndex={isActive ? 0 : -1}
            onFocus={() => onFocus(number)}
            title={plain(row.key)}
          >
            <bdi>{name}</bdi>
          </a>
          <span className="small document-note">
            {isDeleted ? (
              <Badge kind="warn">{text.willBeDeleted}</Badge>
            ) : (
              row.status !== "INDEXED" && <StatusBadge status={row.status} />
            )}
            {!isDeleted && isLacking(row.status) && row.reason && (
              <bdi className="reason" title={plain(row.reason)}>
                {plain(row.reason)}
              </bdi>
            )}
            <bdi className="inline-folder">{folder || text.noFolder}</bdi>
            <span className="inline-updated">{updated}</span>
          </span>
        </div>
      </td>
      <td className="folder" title={folder}>
        <bdi>{folder}</bdi>
      </td>
      <td className="corpus">
        <bdi>{plain(row.corpus ?? "")}</bdi>
      </td>
      <td className="size number">{bytes(row.size)}</td>
      <td className="updated">{updated}</td>
    </tr>
  );
});
