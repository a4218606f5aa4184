/** One document: what happened to it, whether searches find it, its original next to its text, its attributes. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import type { DocumentDetail, DocumentView } from "../../api/types";
import { type Loaded, useApp, useLoaded } from "../../context";
import { bytes, duration, time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { CopyButton } from "../../parts/CopyButton";
import { documentKey, documentName } from "../../parts/names";
import { Badge, Button, Card, StatusBadge } from "../../parts/shapes";
import { ErrorBox, Loading, Notice, sentence } from "../../parts/states";
import { useWaiting, waiting } from "../../parts/Undo";
import { address, go } from "../../route";
import { isFinal, isLacking, meaning } from "../../status";
import { AttributesCard } from "./AttributesCard";
import { followDeletion, lastListing, paramsOf } from "./listing";
import { Pages } from "./Pages";
import { Probe } from "./Probe";
import { ReceiptCard } from "./ReceiptCard";
import { steps } from "./timeline";

const FIRST_DELAY_SECONDS = 1;
const LONGEST_DELAY_SECONDS = 15;

export function Detail({ id, canWrite }: { id: string; canWrite: boolean }) {
  const document = useFollowed(id);
  const listing = lastListing();
  const back = address("documents", listing ? paramsOf(listing.filters) : {});
  return (
    <div className="stack detail">
      <p>
        <a href={back}>← All documents</a>
      </p>
      {document.error && !document.data && <ErrorBox error={document.error} onRetry={document.reload} />}
      {!document.data && !document.error && <Loading what="the document" />}
      {document.data && document.error?.status === 404 && (
        <Notice>The document is deleted, or you no longer have access to it.</Notice>
      )}
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
    if (before !== undefined) announce(`Status: ${meaning(status).label}`);
  }, [status, before, announce]);
  return loaded;
}

interface KnownProps {
  document: DocumentDetail;
  canWrite: boolean;
  onChange: () => void;
  back: string;
}

function Known({ document, canWrite, onChange, back }: KnownProps) {
  const { client } = useApp();
  const [error, setError] = useState<ApiError | null>(null);
  const isWaiting = useWaiting().some((action) => action.id === document.id);
  const [wasWaiting, setWasWaiting] = useState(isWaiting);
  useEffect(() => {
    if (wasWaiting === isWaiting) return;
    setWasWaiting(isWaiting);
    if (!isWaiting) onChange();
  }, [wasWaiting, isWaiting, onChange]);
  const isPresent = document.status !== "DELETED" && document.size !== null;
  const version = document.etag ?? "";
  const view = useLoaded(`view ${document.uri} ${version} ${isPresent}`, (client, signal) =>
    isPresent ? client.post("/api/view", { uri: document.uri }, signal) : Promise.resolve(null),
  );
  const [page, setPage] = useState<number | null>(null);
  const original = useRef<HTMLElement>(null);
  const announce = useAnnounce();
  const showPage = (next: number) => {
    setPage(next);
    original.current?.scrollIntoView();
    original.current?.focus({ preventScroll: true });
    announce(`Page ${next} of the original`);
  };
  const name = documentName(document.uri);
  const remove = () => {
    const { id } = document;
    waiting.add({
      id: document.id,
      text: `“${name}” will be deleted.`,
      run: async (isLeaving) => {
        if (isLeaving) return client.deleteAndLeave("/api/documents/{id}", { id });
        try {
          lastListing()?.replace(await client.delete("/api/documents/{id}", { id }));
          followDeletion(client, document.id, document.key).catch(() => undefined); // the listing can be refreshed
        } catch (reason) {
          setError(ApiError.of(reason));
        }
      },
    });
    go(back);
  };
  return (
    <>
      <header className="stack">
        <div className="row spread">
          <h1 dir="auto">{name}</h1>
          <div className="row">
            <CopyButton label="Copy the URI" text={() => document.uri} />
            {canWrite && isPresent && (
              <Button kind="danger" disabled={isWaiting} onClick={remove}>
                Delete
              </Button>
            )}
          </div>
        </div>
        <p className="row">
          {isWaiting ? <Badge kind="warn">Will be deleted</Badge> : <StatusBadge status={document.status} />}
          <bdi className="small path">{documentKey(document.uri)}</bdi>
          <span className="small">
            {[bytes(document.size), `updated ${time(document.updated_at)}`].join(" · ")}
          </span>
        </p>
      </header>
      {error && <ErrorBox error={error} onRetry={remove} />}
      <Shortfall document={document} />
      <div className="two">
        <Timeline document={document} view={view} />
        <AttributesCard
          key={document.id}
          document={document}
          canWrite={canWrite && isPresent}
          onSaved={onChange}
        />
      </div>
      {document.receipt && (
        <ReceiptCard receipt={document.receipt} onPage={(view.data?.pages ?? 1) > 1 ? showPage : undefined} />
      )}
      {isPresent && (
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

/** What searches do not find. The receipt, if there is one, follows with the reasons. */
function Shortfall({
  document: { status, reason, receipt, knowledge_base_status },
}: {
  document: DocumentDetail;
}) {
  if (status === "FAILED")
    return (
      <Notice kind="warning">
        Searches do not find this document. {sentence(reason ?? "The knowledge base gave no reason")}
      </Notice>
    );
  if (status !== "PARTIALLY_INDEXED") return null;
  const isOwn = receipt !== null && knowledge_base_status === "INDEXED";
  return (
    <Notice kind="warning">
      {receipt?.unreadable
        ? "Searches find this document. It is not known whether they find all of it."
        : "Searches find only a part of this document."}{" "}
      {isOwn ? "“What was read” has the details." : reason && sentence(reason)}
    </Notice>
  );
}

/** Whether the notice above the page has the reason. */
function isNoticed({ status, reason }: DocumentDetail, told: string): boolean {
  return told === reason && isLacking(status);
}

function Timeline({ document, view }: { document: DocumentDetail; view: Loaded<DocumentView | null> }) {
  return (
    <Card title="What happened">
      <ol className="timeline">
        {steps(document).map((step) => (
          <li key={`${step.at} ${step.text}`} className={step.status ? meaning(step.status).badge : ""}>
            <strong>{step.text}</strong>{" "}
            <span className="small">
              {time(step.at)}
              {step.seconds !== null && ` · for ${duration(step.seconds)}`}
            </span>
            {step.reason && !isNoticed(document, step.reason) && <p dir="auto">{step.reason}</p>}
          </li>
        ))}
        {document.waiting_for && (
          <li className="accent" aria-live="polite">
            <span className="spinner" aria-hidden="true" /> {document.waiting_for}
          </li>
        )}
        {document.searchable && !document.waiting_for && <Probe document={document} view={view} />}
      </ol>
    </Card>
  );
}
