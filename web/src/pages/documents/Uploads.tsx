/** Uploads: choose or drop files and folders, and follow each until searches find it. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type FormEvent, memo, useEffect, useId, useMemo, useRef } from "react";
import type { Corpora } from "../../api/types";
import { useApp, useKept, useLoaded } from "../../context";
import { useAnnounce } from "../../parts/Announcer";
import { type Attributes, parsePairs } from "../../parts/attributes";
import { bytes, documentName, percent } from "../../parts/names";
import { address } from "../../route";
import { type Chosen, fromInput, SUFFIXES } from "./files";
import { StatusBadge } from "./StatusBadge";
import { type UploadApi, uploadApi } from "./sending";
import { overall, type Upload, uploads, useUploads } from "./uploads";

const ROW_PIXELS = 64;

export interface Form {
  folder: string;
  corpus: string;
  version: string;
  others: string;
}

const NO_FORM: Form = { folder: "", corpus: "", version: "", others: "" };
/** What the form says, for as long as the tab is open. */
const FORM = "uploads.form";

export function attributesOf({ corpus, version, others }: Form): Attributes | string {
  const found = parsePairs(others);
  if (typeof found === "string") return found;
  return {
    ...(corpus.trim() ? { corpus: corpus.trim() } : {}),
    ...(version.trim() ? { version: version.trim() } : {}),
    ...found,
  };
}

/** Add files with the attributes of the form. Returns what is wrong with them. */
export function useAdd(): (chosen: readonly Chosen[]) => string | null {
  const { client, kept } = useApp();
  const announce = useAnnounce();
  return (chosen) => {
    const form = kept.read(FORM, NO_FORM);
    const attributes = attributesOf(form);
    if (typeof attributes === "string") return attributes;
    uploads.add(uploadApi(client), chosen, form.folder, attributes);
    announce(`${chosen.length} ${chosen.length === 1 ? "file" : "files"} added`);
    return null;
  };
}

export function Uploads({ problem, onAdd }: { problem: string | null; onAdd: (chosen: Chosen[]) => void }) {
  const { client } = useApp();
  const api = useMemo(() => uploadApi(client), [client]);
  const all = useUploads();
  return (
    <div className="stack">
      <Choose onAdd={onAdd} />
      <AttributesForm problem={problem} />
      {all.length > 0 && <Progress all={all} api={api} />}
      {all.length > 0 && <Rows all={all} api={api} />}
    </div>
  );
}

function Choose({ onAdd }: { onAdd: (chosen: Chosen[]) => void }) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const chosen = (event: FormEvent<HTMLInputElement>) => {
    const input = event.currentTarget;
    if (input.files?.length) onAdd(fromInput(input.files));
    input.value = "";
  };
  return (
    <section className="drop" aria-labelledby="drop-title">
      <h2 id="drop-title">Drop files or folders anywhere on this page</h2>
      <div className="row">
        <button type="button" className="primary" onClick={() => files.current?.click()}>
          Choose files
        </button>
        <button type="button" onClick={() => folder.current?.click()}>
          Choose a folder
        </button>
      </div>
      <p className="small">{SUFFIXES.map((each) => each.slice(1)).join(", ")}</p>
      <input ref={files} type="file" hidden multiple accept={SUFFIXES.join(",")} onChange={chosen} />
      <input
        ref={(input) => {
          folder.current = input;
          if (input) input.webkitdirectory = true;
        }}
        type="file"
        hidden
        multiple
        onChange={chosen}
      />
    </section>
  );
}

function AttributesForm({ problem }: { problem: string | null }) {
  const [values, setValues] = useKept(FORM, NO_FORM);
  const corpora = useLoaded<Corpora>("corpora", (client) => client.get("/api/corpora"));
  const list = useId();
  const set = (change: Partial<Form>) => setValues({ ...values, ...change });
  const wrong = typeof attributesOf(values) === "string" ? (attributesOf(values) as string) : null;
  return (
    <fieldset className="upload-form">
      <legend>For the next files</legend>
      <label>
        Folder
        <input
          dir="auto"
          placeholder="contracts/2026"
          value={values.folder}
          onChange={(event) => set({ folder: event.target.value })}
        />
      </label>
      <label>
        Collection (corpus)
        <input
          dir="auto"
          list={list}
          value={values.corpus}
          onChange={(event) => set({ corpus: event.target.value })}
        />
      </label>
      <datalist id={list}>
        {corpora.data?.corpora.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
      <label>
        Version
        <input dir="auto" value={values.version} onChange={(event) => set({ version: event.target.value })} />
      </label>
      <label className="others">
        Other attributes, one NAME=VALUE a line
        <textarea
          dir="auto"
          rows={2}
          placeholder="year=2026"
          value={values.others}
          aria-invalid={wrong !== null}
          aria-describedby={wrong ? "others-problem" : undefined}
          onChange={(event) => set({ others: event.target.value })}
        />
      </label>
      {(wrong || problem) && (
        <p id="others-problem" className="wrong" role={problem ? "alert" : undefined}>
          {wrong ?? problem}
        </p>
      )}
    </fieldset>
  );
}

function Progress({ all, api }: { all: readonly Upload[]; api: UploadApi }) {
  const announce = useAnnounce();
  const { active, done, failed, refused, sent } = overall(all);
  const facts = [
    active > 0 && `${active} in work`,
    `${done} done`,
    failed > 0 && `${failed} failed`,
    refused > 0 && `${refused} not supported`,
  ]
    .filter(Boolean)
    .join(" · ");
  const wasActive = useRef(false);
  useEffect(() => {
    if (wasActive.current && active === 0) announce(`All uploads are finished: ${facts}`);
    wasActive.current = active > 0;
  }, [active, facts, announce]);
  return (
    <section className="card overall" aria-label="All uploads">
      <div className="row spread">
        <strong>{facts}</strong>
        <div className="row">
          {failed > 1 && (
            <button type="button" onClick={() => uploads.retryFailed(api)}>
              Try all failed again
            </button>
          )}
          {all.some((each) => each.state === "waiting") && (
            <button type="button" onClick={() => uploads.cancelAll()}>
              Cancel the rest
            </button>
          )}
          {all.length > active && (
            <button type="button" className="quiet" onClick={() => uploads.clear()}>
              Clear finished
            </button>
          )}
        </div>
      </div>
      {active > 0 && (
        <div className="row">
          <progress value={sent} max={1} aria-label="Sent of all files" />
          <span className="small">{percent(sent)} sent</span>
        </div>
      )}
    </section>
  );
}

function Rows({ all, api }: { all: readonly Upload[]; api: UploadApi }) {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: all.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 8,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section ref={scroller} className="uploads" tabIndex={0} aria-label="Uploads">
      <ol style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const upload = all[item.index];
          return (
            upload && (
              <li
                key={upload.number}
                aria-setsize={all.length}
                aria-posinset={item.index + 1}
                style={{ transform: `translateY(${item.start}px)`, height: item.size }}
              >
                <Row upload={upload} api={api} />
              </li>
            )
          );
        })}
      </ol>
    </section>
  );
}

const LABELS: Partial<Record<Upload["state"], [string, string]>> = {
  refused: ["Not supported", "warn"],
  waiting: ["Waiting", ""],
  sending: ["Uploading", "accent"],
  cancelled: ["Cancelled", ""],
};

const Row = memo(function Row({ upload, api }: { upload: Upload; api: UploadApi }) {
  const { number, state, status, document: id } = upload;
  const name = documentName(upload.key);
  const label = LABELS[state];
  return (
    <>
      <div className="what">
        {id ? (
          <a href={address("documents", {}, id)} title={upload.key}>
            <bdi>{name}</bdi>
          </a>
        ) : (
          <span title={upload.key}>
            <bdi>{name}</bdi>
          </span>
        )}
        <span className="small" dir="auto" title={upload.reason ?? undefined}>
          {upload.reason ?? `${upload.key.slice(0, -name.length) || "No folder"} · ${bytes(upload.size)}`}
        </span>
      </div>
      <div className="how">
        {label ? (
          <span className={`badge ${label[1]}`}>{label[0]}</span>
        ) : status ? (
          <StatusBadge status={status} />
        ) : (
          <span className={`badge ${state === "failed" ? "bad" : "accent"}`}>
            {state === "failed" ? "Failed" : "Uploaded"}
          </span>
        )}
        {state === "sending" && (
          <progress value={upload.sent} max={upload.size} aria-label={`Sent of ${name}`} />
        )}
        {state === "processing" && <progress aria-label={`${name} is being indexed`} />}
      </div>
      <div className="act">
        {(state === "waiting" || state === "sending") && (
          <button type="button" aria-label={`Cancel ${name}`} onClick={() => uploads.cancel(number)}>
            Cancel
          </button>
        )}
        {(state === "failed" || state === "cancelled") && (
          <button type="button" aria-label={`Try ${name} again`} onClick={() => uploads.retry(api, number)}>
            Try again
          </button>
        )}
      </div>
    </>
  );
});
