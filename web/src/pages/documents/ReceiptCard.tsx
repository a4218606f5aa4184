/** What the file has against what is in the index. What was not read comes first. */

import { Fragment } from "react";
import type { DocumentReceipt } from "../../api/types";
import { time } from "../../format";
import { locale, useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { Badge, Button, Card } from "../../parts/shapes";
import { sentence } from "../../parts/states";
import { Table } from "../../parts/Table";
import { inPercent, type Missing, missing, type Pages, pageOf, share, strip } from "./receipt";

const SHOWN_RECOGNIZED = 5;

interface Props {
  receipt: DocumentReceipt;
  /** Shows a page of the original; undefined if there is none to show. */
  onPage?: ((page: number) => void) | undefined;
}

export function ReceiptCard({ receipt, onPage }: Props) {
  const text = useMessages("documents").receipt;
  return (
    <Card
      title={text.title}
      className="receipt"
      aside={<span className="small">{text.compared(time(receipt.compared_at))}</span>}
    >
      <div className="two">
        <div className="stack">
          <NotRead receipt={receipt} onPage={onPage} />
          <Strip pages={strip(receipt)} onPage={onPage} />
          <Compared receipt={receipt} />
          <Recognized receipt={receipt} onPage={onPage} />
        </div>
        <Figures receipt={receipt} />
      </div>
    </Card>
  );
}

function NotRead({ receipt: { not_read, parts_not_read }, onPage }: Props) {
  const text = useMessages("documents").receipt;
  if (not_read.length === 0) return null;
  const more = parts_not_read - not_read.length;
  return (
    <ul className="not-read">
      {missing(not_read).map((each) => (
        <li key={each.parts[0]?.part}>
          <Reason of={each} onPage={onPage} />
        </li>
      ))}
      {more > 0 && <li className="more">{text.more(more)}</li>}
    </ul>
  );
}

function Compared({ receipt: { unreadable, chunks, complete } }: Pick<Props, "receipt">) {
  const text = useMessages("documents").receipt;
  if (unreadable) return <p dir="auto">{text.unreadable(sentence(plain(unreadable)))}</p>;
  return (
    <>
      {complete && <p>{text.complete}</p>}
      {chunks > 0 && <p className="small">{text.secondReading(chunks)}</p>}
    </>
  );
}

function Reason({ of: { parts, isPartly, why, example }, onPage }: { of: Missing } & Pick<Props, "onPage">) {
  const text = useMessages("documents");
  return (
    <>
      <Badge kind={isPartly ? "warn" : "bad"}>{isPartly ? text.receipt.partly : text.receipt.missing}</Badge>
      <span dir="auto">
        {parts.map(({ part }, place) => {
          const page = pageOf(part);
          return (
            <span key={part}>
              {place > 0 && ", "}
              {page !== null && onPage ? (
                <Button kind="link" onClick={() => onPage(page)}>
                  {text.pageNumber(page)}
                </Button>
              ) : (
                <strong>
                  <bdi>{page === null ? plain(part) : text.pageNumber(page)}</bdi>
                </strong>
              )}
            </span>
          );
        })}
        : {why}
        {example && (
          <>
            {text.receipt.example}
            <q dir="auto">{plain(example)}</q>
          </>
        )}
      </span>
    </>
  );
}

/** A bar for each page that was read, and the numbers of the others. */
function Strip({ pages, onPage }: { pages: readonly Pages[] } & Pick<Props, "onPage">) {
  const text = useMessages("documents").receipt;
  if (pages.length === 0) return null;
  return (
    <ol className="page-strip" aria-label={text.pages}>
      {pages.map(({ first, last, state }) => {
        const name = first === last ? text.strip[state](first) : text.stripPages(first, last);
        return (
          <li key={first} title={name}>
            {state !== "read" && onPage ? (
              <Button className={state} aria-label={name} onClick={() => onPage(first)}>
                {first}
              </Button>
            ) : (
              <>
                <span className="visually-hidden">{name}</span>
                {state !== "read" && (
                  <span className={state} aria-hidden="true">
                    {first}
                  </span>
                )}
                {state === "read" &&
                  Array.from({ length: last - first + 1 }, (_, place) => (
                    <span key={place} className="read" aria-hidden="true" />
                  ))}
              </>
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** The parts whose text was recognized in pictures, the least certain first. */
function Recognized({ receipt: { recognized }, onPage }: Props) {
  const text = useMessages("documents");
  if (recognized.length === 0) return null;
  return (
    <p className="small">
      {text.receipt.recognized}{" "}
      {recognized.slice(0, SHOWN_RECOGNIZED).map((each, index) => {
        const page = pageOf(each.part);
        const name = `${page === null ? plain(each.part) : text.pageNumber(page)} ${inPercent(each.confidence)}`;
        return (
          <Fragment key={each.part}>
            {index > 0 && ", "}
            {page !== null && onPage ? (
              <Button kind="link" onClick={() => onPage(page)}>
                {name}
              </Button>
            ) : (
              name
            )}
          </Fragment>
        );
      })}
    </p>
  );
}

/** What was counted, and below it what the index does not have on purpose. */
function Figures({ receipt }: { receipt: DocumentReceipt }) {
  const text = useMessages("documents").receipt;
  const { counted, left_out, not_read, compared, words } = receipt;
  // Otherwise the list of what was not read says why.
  const isExplained = not_read.length === 0 || compared < words;
  const lines = [
    ...counted
      .filter((line) => line.number > 0)
      .map((line) => ({
        ...line,
        index: line.read.toLocaleString(locale()),
        share: share(line, receipt),
        why: isExplained ? line.why : null,
      })),
    ...left_out.map((line) => ({ ...line, index: text.leftOut, share: null })),
  ];
  if (lines.length === 0) return null;
  return (
    <Table
      rows={lines}
      keyOf={(line, place) => `${place} ${line.what}`}
      columns={[
        [
          text.content,
          (line) => (
            <>
              {text.counted[line.what] ?? line.what}
              {line.share !== null && <Share of={line.share} />}
              {line.why && <span className="small">{line.why}</span>}
            </>
          ),
        ],
        [text.inFile, (line) => line.number.toLocaleString(locale()), "number"],
        [text.inIndex, (line) => line.index, "number"],
      ]}
    />
  );
}

function Share({ of }: { of: number }) {
  return (
    <span className="share">
      <span className="whole" aria-hidden="true">
        <span className={of < 1 ? "some" : undefined} style={{ width: `${of * 100}%` }} />
      </span>
      {inPercent(of)}
    </span>
  );
}
