/** The original next to the text that was read from it; pages that gave no text are named. */
import { useEffect, useState } from "react";
import type { DocumentView } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { length } from "../../parts/spans";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";

export function Pages({ uri, first }: { uri: string; first: Loaded<DocumentView | null> }) {
  const [page, setPage] = useState<number | null>(null);
  const other = useLoaded(`page ${uri} ${page}`, (client, signal) =>
    page === null ? Promise.resolve(null) : client.post("/api/view", { uri, page }, signal),
  );
  const view = page === null ? first : other;
  const [last, setLast] = useState<DocumentView | null>(null);
  useEffect(() => {
    if (view.data) setLast(view.data);
  }, [view.data]);
  const shown = view.data ?? last; // the page before stays until the next one is here
  return (
    <section className="card stack" aria-labelledby="pages-title">
      <div className="row spread">
        <h2 id="pages-title">Original and text</h2>
        {shown && (shown.pages ?? 0) > 1 && (
          <Pager view={shown} onPage={setPage} isLoading={view.isLoading} />
        )}
      </div>
      {view.error && <ErrorBox error={view.error} onRetry={view.reload} />}
      {!shown && !view.error && <Loading what="the document" />}
      {shown?.title && (
        <p>
          <strong dir="auto">{shown.title}</strong>
        </p>
      )}
      {shown && <WithoutText view={shown} onPage={setPage} />}
      {shown && <Page view={shown} />}
    </section>
  );
}

interface PagerProps {
  view: DocumentView;
  onPage: (page: number) => void;
  isLoading?: boolean;
}

function Pager({ view, onPage, isLoading }: PagerProps) {
  const page = view.page ?? 1;
  const pages = view.pages ?? 1;
  return (
    <nav className="row" aria-label="Pages of the document" aria-busy={isLoading}>
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        Previous
      </button>
      <label>
        Page{" "}
        <input
          key={page}
          type="number"
          className="page-number"
          min={1}
          max={pages}
          defaultValue={page}
          onKeyDown={(event) => {
            const next = event.currentTarget.valueAsNumber;
            if (event.key === "Enter" && next >= 1 && next <= pages) onPage(next);
          }}
          onBlur={(event) => {
            const next = event.currentTarget.valueAsNumber;
            if (next !== page && next >= 1 && next <= pages) onPage(next);
          }}
        />{" "}
        of {pages}
      </label>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
        Next
      </button>
    </nav>
  );
}

const NAMED = 12;

function WithoutText({ view, onPage }: PagerProps) {
  const missing = view.pages_without_text;
  if (missing.length === 0) return null;
  return (
    <Notice kind="warning">
      No text was found on{" "}
      {missing.slice(0, NAMED).map((page, number) => (
        <span key={page}>
          {number > 0 && ", "}
          <button type="button" className="link" onClick={() => onPage(page)}>
            page {page}
          </button>
        </span>
      ))}
      {missing.length > NAMED && ` and ${missing.length - NAMED} more`}. Searches cannot find what is only a
      picture.
    </Notice>
  );
}

function Page({ view }: { view: DocumentView }) {
  const end = view.text_start + length(view.text);
  const text = (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="page-text" dir="auto" tabIndex={0} aria-label="Text that was read">
      {view.text_start > 0 && "… "}
      {view.text || <Empty title="No text was found here" />}
    </section>
  );
  if (!view.image)
    return (
      <>
        <p className="small">
          {`This is the text that was read from the ${view.format.toUpperCase()} file`}
          {view.text_start > 0 &&
            `, from character ${view.text_start.toLocaleString()} to ${end.toLocaleString()}`}
          .
        </p>
        {text}
      </>
    );
  return (
    <div className="page-pair">
      <img
        className="page-image"
        src={`data:${view.image_type};base64,${view.image}`}
        width={view.width ?? undefined}
        height={view.height ?? undefined}
        alt={`Page ${view.page}; its text is next to it`}
      />
      {text}
    </div>
  );
}
