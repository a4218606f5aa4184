/** One document: what happened to it, whether searches find it, its original next to its text, its attributes. */

import { useEffect, useRef, useState } from "react";
import type { DocumentDetail, DocumentView } from "../../api/types";
import { type Loaded, useAction, useApp, useLoaded } from "../../context";
import { ago, bytes, duration, time } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { CopyButton } from "../../parts/CopyButton";
import { Icon } from "../../parts/Icon";
import { documentKey, documentName, plain } from "../../parts/names";
import { Badge, Button, Skeleton, StatusBadge } from "../../parts/shapes";
import { Empty, ErrorBox, Notice, sentence } from "../../parts/states";
import { waiting } from "../../parts/Undo";
import { address, go } from "../../route";
import { isFinal, isLacking, meaning } from "../../status";
import { AttributesCard } from "./AttributesCard";
import { Download } from "./Download";
import { lastListing, paramsOf } from "./listing";
import { Pages } from "./Pages";
import { Probe } from "./Probe";
import { ReceiptCard } from "./ReceiptCard";
import { Replace } from "./Replace";
import { removal, useRemoved } from "./removal";
import { replay } from "./replay";
import { focusList } from "./Table";
import { steps } from "./timeline";
import "../../style/document.css";

const FIRST_DELAY_SECONDS = 1;
const LONGEST_DELAY_SECONDS = 15;

export function Detail({ id, canWrite }: { id: string; canWrite: boolean }) {
  const text = useMessages("documents");
  const document = useFollowed(id);
  const listing = lastListing();
  const back = address("documents", listing ? paramsOf(listing.filters) : {});
  useEffect(() => {
    const left = lastListing();
    if (left) left.isLeft = true;
  }, []);
  return (
    <div className="stack detail">
      <p>
        <a className="back" href={back}>
          <Icon name="left" size={16} /> {text.allDocuments}
        </a>
      </p>
      {!document.data && <h1 className="visually-hidden">{text.title}</h1>}
      {document.error?.status === 404 && !document.data && (
        <Empty title={text.notHere} icon="search">
          <p>{text.notHereHint}</p>
          <Button onClick={document.reload}>{text.refresh}</Button>
        </Empty>
      )}
      {document.error && document.error.status !== 404 && !document.data && (
        <ErrorBox error={document.error} onRetry={document.reload} />
      )}
      {!document.data && !document.error && (
        <div className="loading" aria-busy="true">
          <Skeleton lines={6} />
        </div>
      )}
      {document.data && document.error?.status === 404 && <Notice>{text.gone}</Notice>}
      {document.data && (
        <Known document={document.data} canWrite={canWrite} onChange={document.reload} back={back} />
      )}
    </div>
  );
}

/** Load a document, and again until nothing more happens to it. */
function useFollowed(id: string): Loaded<DocumentDetail> {
  const loaded = useLoaded(`document ${id}`, (client, signal) =>
    client.get("/api/documents/{id}", { id }, signal),
  );
  const [delay, setDelay] = useState(FIRST_DELAY_SECONDS);
  const announce = useAnnounce();
  const text = useMessages("documents");
  const { data, isLoading, reload } = loaded;
  const isGone = loaded.error?.status === 404;
  const isInWork =
    data !== null && !isGone && (!isFinal(data.status) || data.again || data.waiting_for !== null);
  useEffect(() => {
    if (data) lastListing()?.replace(data);
  }, [data]);
  useEffect(() => {
    if (!isInWork || isLoading) return;
    const timer = setTimeout(() => {
      setDelay(Math.min(delay * 1.5, LONGEST_DELAY_SECONDS));
      reload();
    }, delay * 1000);
    return () => clearTimeout(timer);
  }, [isInWork, isLoading, reload, delay]);
  const status = data?.status;
  const [before, setBefore] = useState(status);
  useEffect(() => {
    if (status === undefined || status === before) return;
    setBefore(status);
    setDelay(FIRST_DELAY_SECONDS);
    if (before !== undefined) announce(text.statusIs(meaning(status).label));
  }, [status, before, announce, text]);
  return loaded;
}

interface KnownProps {
  document: DocumentDetail;
  canWrite: boolean;
  onChange: () => void;
  back: string;
}

function Known({ document, canWrite, onChange, back }: KnownProps) {
  const text = useMessages("documents");
  const { client, me } = useApp();
  const announce = useAnnounce();
  const again = useAction();
  const isWaiting = useRemoved().has(document.id);
  const [wasWaiting, setWasWaiting] = useState(isWaiting);
  useEffect(() => {
    if (wasWaiting === isWaiting) return;
    setWasWaiting(isWaiting);
    if (!isWaiting) onChange();
  }, [wasWaiting, isWaiting, onChange]);
  const isPresent = document.status !== "DELETED" && document.size !== null;
  const isFailed = document.status === "FAILED";
  // What could not be indexed is not shown either; the reason is there once.
  const isShown = isPresent && !isFailed;
  const version = document.etag ?? "";
  const view = useLoaded(`view ${document.uri} ${version} ${isShown}`, (api, signal) =>
    isShown ? api.post("/api/view", { uri: document.uri }, signal) : Promise.resolve(null),
  );
  const [page, setPage] = useState<number | null>(null);
  const original = useRef<HTMLElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus({ preventScroll: true }), []);
  const showPage = (next: number) => {
    setPage(next);
    original.current?.scrollIntoView();
    original.current?.focus({ preventScroll: true });
    announce(text.pageShown(next));
  };
  const name = documentName(document.uri);
  const remove = () => {
    waiting.add(removal(client, [document], focusList));
    go(back);
    focusList();
  };
  const indexAgain = () =>
    again.run(async () => {
      announce(text.indexedAgain(await replay(client, [document.uri])));
      onChange();
    });
  return (
    <>
      <header className="stack">
        <div className="row spread">
          <h1 ref={title} tabIndex={-1} dir="auto">
            {name}
          </h1>
          <div className="row">
            {isPresent && <Download document={document} />}
            {canWrite && isPresent && (
              <>
                <Replace document={document} isPrimary={isFailed} onReplaced={onChange} />
                <Button kind="danger" disabled={isWaiting} onClick={remove}>
                  <Icon name="delete" size={16} /> {text.remove}
                </Button>
              </>
            )}
            <CopyButton label={text.copyUri} text={() => document.uri} />
          </div>
        </div>
        <p className="row">
          {isWaiting ? (
            <Badge kind="warn">{text.willBeDeleted}</Badge>
          ) : (
            <StatusBadge status={document.status} />
          )}
          <bdi className="small path">{documentKey(document.uri)}</bdi>
          <span className="small" title={time(document.updated_at)}>
            {[bytes(document.size), text.updatedAgo(ago(document.updated_at))].join(" · ")}
          </span>
        </p>
      </header>
      {again.error && <ErrorBox error={again.error} onRetry={indexAgain} />}
      <Shortfall document={document}>
        {isFailed && (
          <p className="row">
            {canWrite && text.whatToDo}
            {canWrite && me.rights.includes("operate") && (
              <Button aria-disabled={again.isRunning} onClick={() => again.isRunning || void indexAgain()}>
                <Icon name="retry" size={16} /> {text.again}
              </Button>
            )}
          </p>
        )}
      </Shortfall>
      <History document={document} view={view} />
      <AttributesCard
        key={document.id}
        document={document}
        canWrite={canWrite && isPresent}
        onSaved={onChange}
      />
      {document.receipt && !(isFailed && document.receipt.unreadable) && (
        <ReceiptCard receipt={document.receipt} onPage={(view.data?.pages ?? 1) > 1 ? showPage : undefined} />
      )}
      {isShown && (
        <Pages
          ref={original}
          uri={document.uri}
          first={view}
          page={page}
          onPage={setPage}
          isCompared={document.receipt !== null && !document.receipt.unreadable}
        />
      )}
    </>
  );
}

interface ShortfallProps {
  document: DocumentDetail;
  children: React.ReactNode;
}

/** What searches do not find, with the reason, which is said once. The receipt, if there is one, has the details. */
function Shortfall({ document, children }: ShortfallProps) {
  const text = useMessages("documents");
  const { status, reason, receipt, knowledge_base_status } = document;
  if (status === "FAILED")
    return (
      <Notice kind="warning">
        <span dir="auto">
          {text.notFound} {sentence(plain(reason ?? text.noReason))}
        </span>
        {children}
      </Notice>
    );
  if (status !== "PARTIALLY_INDEXED") return null;
  const isOwn = receipt !== null && knowledge_base_status === "INDEXED";
  return (
    <Notice kind="warning">
      {receipt?.unreadable ? text.maybeFound : text.partlyFound}{" "}
      {isOwn ? text.seeReceipt : reason && sentence(plain(reason))}
    </Notice>
  );
}

/** Whether the notice above the page has the reason. */
function isNoticed({ status, reason }: DocumentDetail, told: string): boolean {
  return told === reason && isLacking(status);
}

/** The last step in one line, and all of them behind it. */
function History({ document, view }: { document: DocumentDetail; view: Loaded<DocumentView | null> }) {
  const text = useMessages("documents");
  const all = steps(document);
  const last = all.at(-1);
  return (
    <section className="card history" aria-label={text.history}>
      {document.waiting_for && (
        <p aria-live="polite">
          <span className="spinner" aria-hidden="true" /> {document.waiting_for}
        </p>
      )}
      {document.searchable && !document.waiting_for && <Probe document={document} view={view} />}
      {last && (
        <details>
          <summary>
            {text.history}: <strong>{last.text}</strong>{" "}
            <span className="small" title={time(last.at)}>
              {ago(last.at)} · {text.steps(all.length)}
            </span>
          </summary>
          <ol className="timeline">
            {all.map((step) => (
              <li key={`${step.at} ${step.text}`} className={step.status ? meaning(step.status).badge : ""}>
                <strong>{step.text}</strong>{" "}
                <span className="small">
                  {time(step.at)}
                  {step.seconds !== null && ` · ${text.forSeconds(duration(step.seconds))}`}
                </span>
                {step.reason && !isNoticed(document, step.reason) && <p dir="auto">{plain(step.reason)}</p>}
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}
