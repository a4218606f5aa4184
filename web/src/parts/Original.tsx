/** The original of a passage, with exactly the verified characters marked, or none. */

import { useEffect, useRef, useState } from "react";
import type { DocumentView, Source } from "../api/types";
import { useLoaded } from "../context";
import { useMessages } from "../messages";
import { Dialog } from "./Dialog";
import { found, marksHere, visibleBoxes } from "./marks";
import { documentKey, documentName, place, plain } from "./names";
import { Pager } from "./Pager";
import { Badge, Button, IconButton, Scrolling } from "./shapes";
import { ErrorBox, Loading, Notice } from "./states";
import "../style/original.css";
import { slice, spans } from "./spans";

type Mark = DocumentView["marks"][number];

interface Props {
  uri: string;
  /** The page to show first; by default the first with a mark. */
  page?: number | null;
  /** The verified characters. */
  texts?: string[];
  /** The passage that contains them, and where they start in it. */
  passage?: string | null;
  starts?: number[] | null;
  areWords: boolean;
}

/** A passage of a search's result, or of an answer's source, which alone has quotations. */
export type Shown = Pick<Source, "source" | "content"> &
  Partial<Pick<Source, "page" | "last_page" | "is_slide" | "is_recognized" | "sheet" | "section" | "quoted">>;

/** The words that a source was verified to contain. */
function quotedTexts(passage: Shown): string[] {
  return (passage.quoted ?? []).map(({ start, end }) => slice(passage.content, start, end));
}

interface DialogProps {
  passage: Shown;
  /** Whether words of a search are marked, instead of quotations: then nothing is promised of them. */
  areWords?: boolean;
  onClose: () => void;
}

export function OriginalDialog({ passage, areWords = false, onClose }: DialogProps) {
  const text = useMessages("parts");
  const where = place(passage);
  return (
    <Dialog
      title={documentName(passage.source)}
      className="original"
      onClose={onClose}
      aside={(close) => <IconButton icon="close" label={text.close} onClick={close} />}
    >
      {() => (
        <>
          <p className="small" dir="auto">
            {[passage.source && documentKey(passage.source), where].filter(Boolean).join(" · ")}
          </p>
          {passage.source ? (
            <Original
              uri={passage.source}
              page={passage.page ?? null}
              texts={quotedTexts(passage)}
              passage={passage.content}
              starts={(passage.quoted ?? []).map((quoted) => quoted.start)}
              areWords={areWords}
            />
          ) : (
            <Notice>{text.noDocument}</Notice>
          )}
        </>
      )}
    </Dialog>
  );
}

/** The name of a passage's document, which opens the original. */
export function DocumentButton({ passage, onOpen }: { passage: Shown; onOpen: (passage: Shown) => void }) {
  return (
    <Button className="quiet name" dir="auto" onClick={() => onOpen(passage)}>
      {documentName(passage.source)}
    </Button>
  );
}

function Original({ uri, page: first = null, texts = [], passage = null, starts = null, areWords }: Props) {
  const text = useMessages("parts");
  const [page, setPage] = useState<number | null>(first);
  const view = useLoaded(JSON.stringify([uri, texts, page]), (client, signal) =>
    client.post("/api/view", { uri, texts, passage, starts, page }, signal),
  );
  const { shown, error } = view;
  return (
    <Scrolling className="pages" label={text.document}>
      {error && <ErrorBox error={error} onRetry={view.reload} />}
      {!shown && !error && <Loading what={text.theDocument} />}
      {shown && (
        <>
          {!areWords && <Found view={shown} asked={texts.length} />}
          <Pager view={shown} onPage={setPage} isLoading={view.isLoading}>
            {shown.mark_pages
              .filter((each) => each !== shown.page)
              .map((each) => (
                <Button key={each} kind="quiet" onClick={() => setPage(each)}>
                  {text.marksOnPage(each)}
                </Button>
              ))}
            {shown.pages_without_text.includes(shown.page ?? 1) && (
              <Badge kind="warn">{text.pageWithoutText}</Badge>
            )}
          </Pager>
          <Sheet view={shown} />
        </>
      )}
    </Scrolling>
  );
}

function Found({ view, asked }: { view: DocumentView; asked: number }) {
  const said = found(view, asked);
  if (said === null) return null;
  return said.isComplete ? <p className="small">{said.text}</p> : <Notice kind="warning">{said.text}</Notice>;
}

function Sheet({ view }: { view: DocumentView }) {
  const text = useMessages("parts");
  const first = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another view has its first mark elsewhere
  useEffect(() => {
    first.current?.scrollIntoView({ block: "center" }); // returns a promise in newer browsers
  }, [view]);
  const marks = marksHere(view);
  if (view.image) {
    const boxes = marks.flatMap(visibleBoxes);
    const top = Math.min(...boxes.map((box) => box.top));
    return (
      <>
        <div className="original-page">
          <img
            src={`data:${view.image_type};base64,${view.image}`}
            width={view.width ?? undefined}
            height={view.height ?? undefined}
            alt={text.pageAlt(view.page)}
          />
          <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
            {boxes.map((box) => (
              <rect
                key={`${box.left},${box.top}`}
                x={box.left}
                y={box.top}
                width={box.width}
                height={box.height}
                ref={box.top === top ? (first as unknown as React.Ref<SVGRectElement>) : undefined}
              />
            ))}
          </svg>
        </div>
        <details>
          <summary>{text.pageText}</summary>
          <MarkedText view={view} marks={marks} />
        </details>
      </>
    );
  }
  return <MarkedText view={view} marks={marks} first={first} />;
}

function MarkedText({
  view,
  marks,
  first,
}: {
  view: DocumentView;
  marks: Mark[];
  first?: React.RefObject<HTMLElement | null>;
}) {
  const text = useMessages("parts");
  let seen = false;
  return (
    <div className="text" dir="auto">
      {view.text_start > 0 && "… "}
      {spans(view.text, marks).map((part, index) => {
        if (!part.inside) return plain(part.text);
        const isFirst = !seen;
        seen = true;
        return (
          <mark key={index} ref={isFirst ? first : undefined}>
            {plain(part.text)}
          </mark>
        );
      })}
      {view.text === "" && <em>{text.noText}</em>}
    </div>
  );
}
