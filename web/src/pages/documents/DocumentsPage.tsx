/** Documents: all of them, uploads, and for operators what failed and the jobs. */

import { type DragEvent, useEffect, useState } from "react";
import { useApp } from "../../context";
import { Badge } from "../../parts/shapes";
import { address, go, usePlace } from "../../route";
import "../../style/documents.css";
import { Detail } from "./Detail";
import { Failures } from "./Failures";
import { type Chosen, fromDrop } from "./files";
import { Jobs } from "./Jobs";
import { List } from "./List";
import { forgetListing, lastListing, paramsOf } from "./listing";
import { Uploads, useAdd } from "./Uploads";
import { isActive, useUploads } from "./uploads";

const TABS = [
  { name: "", title: "Documents", right: "read" },
  { name: "uploads", title: "Uploads", right: "write" },
  { name: "failures", title: "Failures", right: "operate" },
  { name: "jobs", title: "Jobs", right: "operate" },
] as const;

export default function DocumentsPage() {
  const { me } = useApp();
  const { id, params } = usePlace();
  const add = useAdd();
  const [problem, setProblem] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const canWrite = me.rights.includes("write");
  const active = useUploads().filter(isActive).length;
  const tabs = TABS.filter((tab) => me.rights.includes(tab.right));
  const tab = id === null ? (params.get("tab") ?? "") : "";
  const isAllowed = tabs.some((each) => each.name === tab);
  const listing = lastListing();

  useEffect(() => {
    if (tab) return forgetListing;
  }, [tab]);
  useEffect(() => forgetListing, []);

  const onAdd = (chosen: readonly Chosen[]) => {
    setProblem(chosen.length > 0 ? add(chosen) : null);
    if (tab !== "uploads" || id !== null) go(address("documents", { tab: "uploads" }));
  };
  const isFiles = (event: DragEvent) => canWrite && event.dataTransfer.types.includes("Files");
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping has buttons beside it
    <div
      className={`stack documents-page ${isOver ? "over" : ""}`}
      onDragOver={(event) => {
        if (!isFiles(event)) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        if (!isFiles(event)) return;
        event.preventDefault();
        setOver(false);
        void fromDrop(event.dataTransfer.items).then(onAdd, (error: Error) =>
          setProblem(`The browser cannot read what you dropped: ${error.message}`),
        );
      }}
    >
      {id === null && <h1 className="visually-hidden">Documents</h1>}
      <nav className="tabs" aria-label="Parts of this page">
        {tabs.map(({ name, title }) => (
          <a
            key={name}
            href={address("documents", name ? { tab: name } : listing ? paramsOf(listing.filters) : {})}
            aria-current={name === tab ? "page" : undefined}
          >
            {title}
            {name === "uploads" && active > 0 && <Badge kind="accent">{active}</Badge>}
          </a>
        ))}
      </nav>
      {id !== null ? (
        <Detail key={id} id={id} canWrite={canWrite} />
      ) : !isAllowed ? (
        <section className="state">
          <h2>You cannot open this</h2>
          <p>It needs a right that you do not have. Ask an operator for it.</p>
        </section>
      ) : tab === "uploads" ? (
        <Uploads problem={problem} onAdd={onAdd} />
      ) : tab === "failures" ? (
        <Failures />
      ) : tab === "jobs" ? (
        <Jobs />
      ) : (
        <List canWrite={canWrite} />
      )}
    </div>
  );
}
