/** The original next to the text that was read from it; pages that gave no text are named. */

import type { Ref } from "react";
import type { DocumentView } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { Pager } from "../../parts/Pager";
import { Button, Card, Scrolling } from "../../parts/shapes";
import { length } from "../../parts/spans";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";

interface Props {
  uri: string;
  first: Loaded<DocumentView | null>;
  /** The page to show; null for the first view. */
  page: number | null;
  onPage: (page: number) => void;
  /** Whether what was not read is shown elsewhere. */
  isCompared: boolean;
  ref: Ref<HTMLElement>;
}

export function Pages({ uri, first, page, onPage, isCompared, ref }: Props) {
  const other = useLoaded(`page ${uri} ${page}`, (client, signal) =>
    page === null ? Promise.resolve(null) : client.post("/api/view", { uri, page }, signal),
  );
  const view = page === null ? first : other;
  const shown = view.shown ?? first.shown; // the page before stays until the next one is here
  return (
    <Card
      title="Original and text"
      className="pages-of-original"
      ref={ref}
      aside={shown && <Pager view={shown} onPage={onPage} isLoading={view.isLoading} />}
    >
      {view.error && <ErrorBox error={view.error} onRetry={view.reload} />}
      {!shown && !view.error && <Loading what="the document" />}
      {shown?.title && (
        <p>
          <strong dir="auto">{shown.title}</strong>
        </p>
      )}
      {shown && !isCompared && <WithoutText view={shown} onPage={onPage} />}
      {shown && <Page view={shown} />}
    </Card>
  );
}

const NAMED = 12;

function WithoutText({ view, onPage }: { view: DocumentView; onPage: (page: number) => void }) {
  const missing = view.pages_without_text;
  if (missing.length === 0) return null;
  return (
    <Notice kind="warning">
      No text was found on{" "}
      {missing.slice(0, NAMED).map((page, number) => (
        <span key={page}>
          {number > 0 && ", "}
          <Button kind="link" onClick={() => onPage(page)}>
            page {page}
          </Button>
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
    <Scrolling className="page-text" dir="auto" label="Text that was read">
      {view.text_start > 0 && "… "}
      {view.text || <Empty title="No text was found here" />}
    </Scrolling>
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
