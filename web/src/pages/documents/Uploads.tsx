/** Uploads: choose or drop files and folders, and follow each until searches find it. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type FormEvent, memo, useEffect, useMemo, useRef } from "react";
import { useApp, useKept, useLoaded } from "../../context";
import { bytes, count, percent } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { Select, TextField } from "../../parts/fields";
import { documentName, plain } from "../../parts/names";
import { Badge, Button, Scrolling, StatusBadge } from "../../parts/shapes";
import { address } from "../../route";
import { type Chosen, fromInput, SUFFIXES } from "./files";
import { attributesOf, chosenPrefix, type Form, folderOf, NO_FORM } from "./folders";
import { LabelSelect } from "./LabelSelect";
import { type UploadApi, uploadApi } from "./sending";
import { overall, type Upload, uploads, useUploads } from "./uploads";

const ROW_PIXELS = 64;

/** What the form says, for as long as the tab is open. */
const FORM = "uploads.form";

/** Add files with the attributes of the form. Returns what is wrong with them. */
export function useAdd(): (chosen: readonly Chosen[]) => string | null {
  const { client, kept, me } = useApp();
  const announce = useAnnounce();
  return (chosen) => {
    const form = kept.read(FORM, NO_FORM);
    const attributes = attributesOf(form, me);
    if (typeof attributes === "string") return attributes;
    uploads.add(uploadApi(client), chosen, folderOf(form, me.writable), attributes);
    announce(`${count(chosen.length, "file")} added`);
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
        <Button kind="primary" onClick={() => files.current?.click()}>
          Choose files
        </Button>
        <Button onClick={() => folder.current?.click()}>Choose a folder</Button>
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
  const { me } = useApp();
  const [values, setValues] = useKept(FORM, NO_FORM);
  const prefix = chosenPrefix(values, me.writable);
  const corpora = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  const set = (change: Partial<Form>) => setValues({ ...values, ...change });
  const attributes = attributesOf(values, me);
  const wrong = typeof attributes === "string" ? attributes : null;
  return (
    <fieldset className="upload-form">
      <legend>For the next files</legend>
      {me.writable.some((each) => each.prefix !== "") && (
        <Select
          label="Folder"
          value={prefix?.prefix ?? ""}
          options={me.writable.map((each) => [each.prefix, each.prefix || "Any other folder"])}
          onChange={(next) => set({ prefix: next, label: "" })}
        />
      )}
      <TextField
        label={prefix?.prefix ? "Folder in it (optional)" : "Folder"}
        placeholder={prefix?.prefix ? "2026" : "contracts/2026"}
        value={values.folder}
        onChange={(next) => set({ folder: next })}
      />
      {prefix && prefix.labels.length > 0 && (
        <LabelSelect prefix={prefix} value={values.label} onChange={(label) => set({ label })} />
      )}
      <TextField
        label="Collection (corpus)"
        known={(corpora.data?.corpora ?? []).map((each) => each.name)}
        value={values.corpus}
        onChange={(corpus) => set({ corpus })}
      />
      <TextField label="Version" value={values.version} onChange={(version) => set({ version })} />
      <label className="field others">
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
  const { active, done, failed, canSucceed, refused, exists, sent } = overall(all);
  const facts = [
    active > 0 && `${active} in progress`,
    `${done} done`,
    exists > 0 && `${exists} ${exists === 1 ? "has a name that is" : "have names that are"} taken`,
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
          {exists > 1 && (
            <>
              <Button onClick={() => uploads.decideAll(api, "both")}>Keep both of all {exists}</Button>
              <Button kind="danger" onClick={() => uploads.decideAll(api, "replace")}>
                Replace all {exists}
              </Button>
            </>
          )}
          {failed > 1 && canSucceed > 0 && (
            <Button onClick={() => uploads.retryFailed(api)}>
              {canSucceed === failed ? "Try all failed again" : `Try ${canSucceed} of ${failed} failed again`}
            </Button>
          )}
          {all.some((each) => each.state === "waiting") && (
            <Button onClick={() => uploads.cancelAll()}>Cancel the rest</Button>
          )}
          {all.length > active + exists && (
            <Button kind="quiet" onClick={() => uploads.clear()}>
              Clear finished
            </Button>
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
    <Scrolling ref={scroller} className="uploads" label="Uploads">
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
    </Scrolling>
  );
}

const LABELS: Partial<Record<Upload["state"], [string, string]>> = {
  refused: ["Not supported", "warn"],
  waiting: ["Waiting", ""],
  sending: ["Uploading", "accent"],
  cancelled: ["Cancelled", ""],
  exists: ["Name is taken", "warn"],
};

const Row = memo(function Row({ upload, api }: { upload: Upload; api: UploadApi }) {
  const { number, state, status, document: id } = upload;
  const name = documentName(upload.key);
  const label = LABELS[state];
  return (
    <>
      <div className="what">
        {id ? (
          <a href={address("documents", {}, id)} title={plain(upload.key)}>
            <bdi>{name}</bdi>
          </a>
        ) : (
          <span title={plain(upload.key)}>
            <bdi>{name}</bdi>
          </span>
        )}
        <span className="small" dir="auto" title={upload.reason ?? undefined}>
          {state === "exists"
            ? "A document has this name. Replacing it cannot be undone."
            : (upload.reason ??
              `${plain(upload.key.replace(/[^/]*$/, "")) || "No folder"} · ${bytes(upload.size)}`)}
        </span>
      </div>
      <div className="how">
        {label ? (
          <Badge kind={label[1]}>{label[0]}</Badge>
        ) : status ? (
          <StatusBadge status={status} />
        ) : (
          <Badge kind={state === "failed" ? "bad" : "accent"}>
            {state === "failed" ? "Failed" : "Uploaded"}
          </Badge>
        )}
        {state === "sending" && (
          <progress value={upload.sent} max={upload.size} aria-label={`Sent of ${name}`} />
        )}
        {state === "processing" && <progress aria-label={`${name} is being indexed`} />}
      </div>
      <div className="act">
        {(state === "waiting" || state === "sending") && (
          <Button aria-label={`Cancel ${name}`} onClick={() => uploads.cancel(number)}>
            Cancel
          </Button>
        )}
        {state === "exists" && (
          <>
            <Button aria-label={`Keep both of ${name}`} onClick={() => uploads.decide(api, number, "both")}>
              Keep both
            </Button>{" "}
            <Button
              kind="danger"
              aria-label={`Replace ${name}`}
              onClick={() => uploads.decide(api, number, "replace")}
            >
              Replace
            </Button>
          </>
        )}
        {(state === "cancelled" || (state === "failed" && (upload.canSucceed || id !== null))) && (
          <Button aria-label={`Try ${name} again`} onClick={() => uploads.retry(api, number)}>
            Try again
          </Button>
        )}
      </div>
    </>
  );
});
