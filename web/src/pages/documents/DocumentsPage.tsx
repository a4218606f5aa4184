/** Documents: all of them with a sheet for uploads, and for operators what failed and the jobs. */

import { type DragEvent, useEffect, useMemo, useState } from "react";
import { useApp } from "../../context";
import { useMessages } from "../../messages";
import { FindDocument } from "../../parts/FindDocument";
import { Icon } from "../../parts/Icon";
import { Empty } from "../../parts/states";
import { address, go, usePlace } from "../../route";
import { useStore } from "../../store";
import "../../style/documents.css";
import { Detail } from "./Detail";
import { Failures } from "./Failures";
import { type Chosen, fromDrop } from "./files";
import { Jobs } from "./Jobs";
import { List } from "./List";
import { filtersOf, forgetListing, lastListing, paramsOf } from "./listing";
import { uploadApi } from "./sending";
import { UploadSheet, useAdd } from "./Uploads";
import { isActive, uploads, useUploads } from "./uploads";

const UPLOADS = "uploads";
const TABS = [
  { name: "", right: "read" },
  { name: "failures", right: "operate" },
  { name: "jobs", right: "operate" },
] as const;

export default function DocumentsPage() {
  const text = useMessages("documents");
  const { client, kept, me, session } = useApp();
  const isOver = useStore(session) !== null;
  const { id, params } = usePlace();
  const add = useAdd();
  const [ready, setReady] = useState<readonly Chosen[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [isAbove, setAbove] = useState(false);
  const canWrite = me.rights.includes("write");
  const all = useUploads();
  const active = all.filter(isActive).length;
  const waiting = all.filter(({ state }) => state === "exists").length;
  const tabs = TABS.filter((tab) => me.rights.includes(tab.right));
  const named = params.get("tab") ?? "";
  const isKnown = id === null && [...TABS.map(({ name }) => name), UPLOADS].some((each) => each === named);
  const asked = isKnown ? named : "";
  const isUpload = canWrite && asked === UPLOADS;
  const tab = isUpload ? "" : asked;
  const isAllowed = tabs.some((each) => each.name === tab);
  const listing = lastListing();
  const filters =
    id === null && tab === "" ? paramsOf(filtersOf(params)) : listing && paramsOf(listing.filters);
  useMemo(() => uploads.open(uploadApi(client), kept), [client, kept]);

  useEffect(() => {
    if (tab) return forgetListing;
  }, [tab]);
  useEffect(() => forgetListing, []);

  const withTab = (name: string) => {
    const next = new URLSearchParams(filters ?? {});
    if (name) next.set("tab", name);
    return address("documents", next);
  };
  const isFiles = (event: DragEvent) => canWrite && event.dataTransfer.types.includes("Files");
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping has buttons beside it
    <div
      className={`stack documents-page ${isAbove ? "over" : ""}`}
      onDragOver={(event) => {
        if (!isFiles(event)) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
        setAbove(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setAbove(false);
      }}
      onDrop={(event) => {
        if (!isFiles(event)) return;
        event.preventDefault();
        setAbove(false);
        void fromDrop(event.dataTransfer.items).then(
          (chosen) => {
            // Where they go, and who will see them, is read and chosen before they are sent.
            setReady((before) => [...before, ...chosen]);
            if (!isUpload) go(withTab(UPLOADS));
          },
          (error: Error) => setProblem(text.unreadableDrop(error.message)),
        );
      }}
    >
      {id === null && (
        <header className="row spread documents-head">
          <h1>{text.title}</h1>
          <FindDocument
            placeholder={text.missing}
            onChoose={(document) => go(address("documents", {}, document.id))}
          />
          <div className="row">
            {active + waiting > 0 && (
              <a className="small" href={withTab(UPLOADS)}>
                {active > 0 ? text.uploadsActive(active) : text.uploadsWaiting(waiting)}
              </a>
            )}
            {canWrite && (
              <a className="button primary" href={withTab(UPLOADS)}>
                <Icon name="upload" /> {text.upload}
              </a>
            )}
          </div>
        </header>
      )}
      {id === null && (tabs.length > 1 || tab !== "") && (
        <nav className="tabs" aria-label={text.tabsLabel}>
          {tabs.map(({ name }) => (
            <a key={name} href={withTab(name)} aria-current={name === tab ? "page" : undefined}>
              {text.tabs[name]}
            </a>
          ))}
        </nav>
      )}
      {problem && (
        <p className="wrong" role="alert">
          {problem}
        </p>
      )}
      {id !== null ? (
        <Detail key={id} id={id} canWrite={canWrite} />
      ) : !isAllowed ? (
        <Empty title={text.refused} icon="lock">
          <p>{text.refusedHint}</p>
        </Empty>
      ) : tab === "failures" ? (
        <Failures />
      ) : tab === "jobs" ? (
        <Jobs />
      ) : (
        <List canWrite={canWrite} />
      )}
      {isUpload && !isOver && (
        <UploadSheet
          ready={ready}
          onReady={setReady}
          onAdd={add}
          onClose={() => {
            // Following a link of the sheet closes it too.
            if (new URLSearchParams(location.hash.split("?")[1]).get("tab") === UPLOADS) go(withTab(""));
          }}
        />
      )}
    </div>
  );
}
