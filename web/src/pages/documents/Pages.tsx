/** The original next to the text that was read from it; pages that gave no text are named. */

import type { Ref } from "react";
import type { DocumentView } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { Pager } from "../../parts/Pager";
import { Button, Card, Scrolling, Skeleton } from "../../parts/shapes";
import { length } from "../../parts/spans";
import { Empty, ErrorBox, Notice } from "../../parts/states";
import { ReadText } from "./ReadText";

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
  const text = useMessages("documents");
  const other = useLoaded(`page ${uri} ${page}`, (client, signal) =>
    page === null ? Promise.resolve(null) : client.post("/api/view", { uri, page }, signal),
  );
  const view = page === null ? first : other;
  const shown = view.shown ?? first.shown; // the page before stays until the next one is here
  return (
    <Card
      title={text.original}
      className="pages-of-original"
      ref={ref}
      aside={shown && <Pager view={shown} onPage={onPage} isLoading={view.isLoading} />}
    >
      {view.error && <ErrorBox error={view.error} onRetry={view.reload} />}
      {!shown && !view.error && <Skeleton lines={8} />}
      {shown?.title && (
        <p>
          <strong dir="auto">{plain(shown.title)}</strong>
        </p>
      )}
      {shown && !isCompared && <WithoutText view={shown} onPage={onPage} />}
      {shown && <Page view={shown} />}
    </Card>
  );
}

const NAMED = 12;

function WithoutText({ view, onPage }: { view: DocumentView; onPage: (page: number) => void }) {
  const text = useMessages("documents");
  const missing = view.pages_without_text;
  if (missing.length === 0) return null;
  return (
    <Notice kind="warning">
      {text.noTextOn}{" "}
      {missing.slice(0, NAMED).map((page, number) => (
        <span key={page}>
          {number > 0 && ", "}
          <Button kind="link" onClick={() => onPage(page)}>
            {text.pageNumber(page)}
          </Button>
        </span>
      ))}
      {missing.length > NAMED && ` ${text.andMore(missing.length - NAMED)}`}. {text.onlyPicture}
    </Notice>
  );
}

function Page({ view }: { view: DocumentView }) {
  const text = useMessages("documents");
  const end = view.text_start + length(view.text);
  const read = (
    <Scrolling className="page-text" dir="auto" label={text.readText}>
      {view.text_start > 0 && "… "}
      {view.text ? <ReadText text={view.text} /> : <Empty title={text.noText} />}
    </Scrolling>
  );
  if (!view.image)
    return (
      <>
        <p className="small">
          {text.readFrom(view.format.toUpperCase())}
          {view.text_start > 0 && ` ${text.readPart(view.text_start, end)}`}
        </p>
        {read}
      </>
    );
  return (
    <div className="page-pair">
      <img
        className="page-image"
        src={`data:${view.image_type};base64,${view.image}`}
        width={view.width ?? undefined}
        height={view.height ?? undefined}
        alt={text.pageImage(view.page)}
      />
      {read}
    </div>
  );
}
