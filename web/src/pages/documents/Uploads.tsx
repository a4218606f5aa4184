/** Uploads: where to and who sees it, files and folders, and each file followed until searches find it. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type FormEvent, memo, useEffect, useMemo, useRef, useState } from "react";
import type { Me } from "../../api/types";
import { useApp, useKept, useLoaded } from "../../context";
import { bytes, percent } from "../../format";
import { messages, useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm, Sheet } from "../../parts/Dialog";
import { Select, TextField } from "../../parts/fields";
import { Icon } from "../../parts/Icon";
import { documentName, plain } from "../../parts/names";
import { Badge, Button, Scrolling, StatusBadge } from "../../parts/shapes";
import { address } from "../../route";
import { type Chosen, fromInput, iconOf, SUFFIXES, TYPES } from "./files";
import { attributesOf, chosenPrefix, type Form, folderOf, NO_FORM } from "./folders";
import { LabelSelect } from "./LabelSelect";
import { type UploadApi, uploadApi } from "./sending";
import { GROUPS, type Group, groupOf, overall, type Upload, uploads, useUploads } from "./uploads";
import "../../style/uploads.css";

const ROW_PIXELS = 60;
const TITLE_PIXELS = 36;

/** What the form says, for as long as the tab is open. */
const FORM = "uploads.form";

/** Add files with the attributes of the form. Returns what is wrong with them. */
export function useAdd(): (chosen: readonly Chosen[]) => string | null {
  const text = useMessages("documents");
  const { client, kept, me } = useApp();
  const announce = useAnnounce();
  return (chosen) => {
    const form = kept.read(FORM, NO_FORM);
    const attributes = attributesOf(form, me);
    if (typeof attributes === "string") return attributes;
    uploads.add(uploadApi(client), chosen, folderOf(form, me.writable), attributes);
    announce(text.added(chosen.length));
    return null;
  };
}

interface SheetProps {
  /** Files that were dropped on the page, and wait for a look at the form. */
  ready: readonly Chosen[];
  onReady: (ready: readonly Chosen[]) => void;
  onAdd: (chosen: readonly Chosen[]) => string | null;
  onClose: () => void;
}

export function UploadSheet({ ready, onReady, onAdd, onClose }: SheetProps) {
  const text = useMessages("documents");
  const { client, me } = useApp();
  const api = useMemo(() => uploadApi(client), [client]);
  const all = useUploads();
  const [form, setForm] = useKept(FORM, NO_FORM);
  const attributes = attributesOf(form, me);
  const wrong = typeof attributes === "string" ? attributes : null;
  const canWrite = me.writable.length > 0 || me.label_attribute === null;
  return (
    <Sheet title={text.uploadTitle} isWide onClose={onClose}>
      {() => (
        <>
          {canWrite ? (
            <>
              <Where form={form} onChange={setForm} wrong={wrong} />
              {ready.length > 0 ? (
                <section className="drop" aria-label={text.ready(ready.length)}>
                  <strong>{text.ready(ready.length)}</strong>
                  <div className="row">
                    <Button
                      kind="primary"
                      disabled={wrong !== null}
                      onClick={() => {
                        if (onAdd(ready) === null) onReady([]);
                      }}
                    >
                      <Icon name="upload" />
                      {text.uploadReady(ready.length, plain(folderOf(form, me.writable)))}
                    </Button>
                    <Button onClick={() => onReady([])}>{text.discardReady}</Button>
                  </div>
                </section>
              ) : (
                <Choose isDisabled={wrong !== null} onAdd={onAdd} />
              )}
            </>
          ) : (
            <p>{text.nowhere}</p>
          )}
          {all.length > 0 && <Progress all={all} api={api} />}
          {all.length > 0 && <Rows all={all} api={api} />}
        </>
      )}
    </Sheet>
  );
}

interface ChooseProps {
  isDisabled: boolean;
  onAdd: (chosen: readonly Chosen[]) => string | null;
}

function Choose({ isDisabled, onAdd }: ChooseProps) {
  const text = useMessages("documents");
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const chosen = (event: FormEvent<HTMLInputElement>) => {
    const input = event.currentTarget;
    if (input.files?.length) onAdd(fromInput(input.files));
    input.value = "";
  };
  return (
    <section className="drop" aria-labelledby="drop-title">
      <h3 id="drop-title">{text.drop}</h3>
      <div className="row">
        <Button kind="primary" disabled={isDisabled} onClick={() => files.current?.click()}>
          {text.chooseFiles}
        </Button>
        <Button disabled={isDisabled} onClick={() => folder.current?.click()}>
          {text.chooseFolder}
        </Button>
      </div>
      <p className="small">{TYPES}</p>
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

interface WhereProps {
  form: Form;
  onChange: (form: Form) => void;
  wrong: string | null;
}

function Where({ form, onChange, wrong }: WhereProps) {
  const text = useMessages("documents");
  const { me } = useApp();
  const prefix = chosenPrefix(form, me.writable);
  const corpora = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  const set = (change: Partial<Form>) => onChange({ ...form, ...change });
  const label = prefix && ((prefix.labels.includes(form.label) && form.label) || prefix.default);
  return (
    <fieldset className="upload-form">
      <legend>{text.where}</legend>
      {me.writable.some((each) => each.prefix !== "") && (
        <Select
          label={text.whereFolder}
          value={prefix?.prefix ?? ""}
          options={me.writable.map((each) => [each.prefix, plain(each.prefix) || text.otherFolder])}
          onChange={(next) => set({ prefix: next, label: "" })}
        />
      )}
      <TextField
        label={prefix?.prefix ? text.folderIn : text.whereFolder}
        placeholder={prefix?.prefix ? "2026" : text.folderExample}
        value={form.folder}
        onChange={(next) => set({ folder: next })}
      />
      {prefix && prefix.labels.length > 0 && (
        <LabelSelect prefix={prefix} value={form.label} onChange={(next) => set({ label: next })} />
      )}
      <p className="small seen-by">
        <Icon name={label ? "people" : "show"} size={16} />{" "}
        <span>
          {me.label_attribute === null
            ? text.seenByAll
            : label
              ? seenBy(label, me)
              : wrong === null && text.seenByOperators}
        </span>
      </p>
      <details className="others">
        <summary>{text.more}</summary>
        <div className="upload-more">
          <TextField
            label={text.corpusField}
            known={(corpora.data?.corpora ?? []).map((each) => each.name)}
            value={form.corpus}
            onChange={(corpus) => set({ corpus })}
          />
          <TextField
            label={text.versionField}
            value={form.version}
            onChange={(version) => set({ version })}
          />
          <label className="field others">
            {text.others}
            <textarea
              dir="auto"
              rows={2}
              placeholder={text.othersExample}
              value={form.others}
              aria-invalid={wrong !== null}
              aria-describedby={wrong ? "others-problem" : undefined}
              onChange={(event) => set({ others: event.target.value })}
            />
          </label>
        </div>
      </details>
      {wrong && (
        <p id="others-problem" className="wrong" role="alert">
          {wrong}
        </p>
      )}
    </fieldset>
  );
}

/** Who sees the documents of a label, by name as far as this person may know. */
function seenBy(label: string, me: Me): string {
  const text = messages("documents");
  const viewers = me.viewers?.[label] ?? [];
  if (viewers.includes("everyone")) return text.seenByAll;
  const names = viewers.map((each) => {
    const [kind = "", ...name] = each.split(":");
    return text.principal(kind, plain(name.join(":")));
  });
  if (names.length === 0) return text.seenBy(plain(label));
  return me.rights.includes("operate") ? text.seenByThese(names) : text.seenByThemToo(names, plain(label));
}

function Progress({ all, api }: { all: readonly Upload[]; api: UploadApi }) {
  const text = useMessages("documents");
  const announce = useAnnounce();
  const { active, done, failed, canSucceed, refused, exists, sent } = overall(all);
  const facts = [
    exists > 0 && text.taken(exists),
    failed > 0 && text.failed(failed),
    refused > 0 && text.notSupported(refused),
    active > 0 && text.inProgress(active),
    text.done(done),
  ]
    .filter(Boolean)
    .join(" · ");
  const [isReplacing, setReplacing] = useState(false);
  const wasActive = useRef(false);
  useEffect(() => {
    if (wasActive.current && active === 0) announce(text.finished(facts));
    wasActive.current = active > 0;
  }, [active, facts, announce, text]);
  return (
    <section className="card overall" aria-label={text.allUploads}>
      <div className="row spread">
        <strong>{facts}</strong>
        <div className="row">
          {exists > 1 && (
            <>
              <Button onClick={() => uploads.decideAll(api, "both")}>{text.keepAll(exists)}</Button>
              <Button kind="danger" onClick={() => setReplacing(true)}>
                {text.replaceAll(exists)}
              </Button>
            </>
          )}
          {failed > 1 && canSucceed > 0 && (
            <Button onClick={() => uploads.retryFailed(api)}>
              {canSucceed === failed ? text.retryAll : text.retrySome(canSucceed, failed)}
            </Button>
          )}
          {all.some((each) => each.state === "waiting") && (
            <Button onClick={() => uploads.cancelAll()}>{text.cancelRest}</Button>
          )}
          {all.length > active + exists && (
            <Button kind="quiet" onClick={() => uploads.clear()}>
              {text.clear}
            </Button>
          )}
        </div>
      </div>
      {isReplacing && (
        <Confirm
          title={text.replaceAllTitle(exists)}
          action={text.replace}
          isDangerous
          onConfirm={async () => uploads.decideAll(api, "replace")}
          onClose={() => setReplacing(false)}
        >
          <p>{text.replaceAllBody}</p>
        </Confirm>
      )}
      {active > 0 && (
        <div className="row">
          <progress value={sent} max={1} aria-label={text.sentOfAll} />
          <span className="small">{text.sent(percent(sent))}</span>
        </div>
      )}
    </section>
  );
}

function Rows({ all, api }: { all: readonly Upload[]; api: UploadApi }) {
  const text = useMessages("documents");
  const scroller = useRef<HTMLElement>(null);
  const lines = useMemo(() => linesOf(all), [all]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (typeof lines[index] === "string" ? TITLE_PIXELS : ROW_PIXELS),
    getItemKey: (index) => {
      const line = lines[index];
      return typeof line === "object" ? line.number : (line ?? index);
    },
    overscan: 8,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: titles and files change places
  useEffect(() => virtual.measure(), [lines]);
  return (
    <Scrolling ref={scroller} className="uploads" label={text.uploads}>
      <ol style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          const style = { transform: `translateY(${item.start}px)`, height: item.size };
          if (typeof line === "string")
            return (
              <li key={line} className="upload-title" style={style}>
                {text.groups[line]}
              </li>
            );
          return (
            line && (
              <li key={line.number} style={style}>
                <Row upload={line} api={api} />
              </li>
            )
          );
        })}
      </ol>
    </Scrolling>
  );
}

/** The uploads in their groups, each below its title; without titles if there is one group. */
function linesOf(all: readonly Upload[]): (Group | Upload)[] {
  const groups = GROUPS.map(
    (group) => [group, all.filter((each) => groupOf(each) === group)] as const,
  ).filter(([, members]) => members.length > 0);
  return groups.flatMap(([group, members]) => (groups.length > 1 ? [group, ...members] : members));
}

const KINDS: Partial<Record<Upload["state"], string>> = {
  refused: "warn",
  waiting: "",
  sending: "accent",
  cancelled: "",
  exists: "warn",
};

const Row = memo(function Row({ upload, api }: { upload: Upload; api: UploadApi }) {
  const text = useMessages("documents");
  const { number, state, status, document: id } = upload;
  const name = documentName(upload.key);
  const kind = KINDS[state];
  return (
    <>
      <Icon name={iconOf(upload.key)} className="upload-icon" />
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
            ? text.existsHint
            : (upload.reason ??
              `${plain(upload.key.replace(/[^/]*$/, "")) || text.noFolder} · ${bytes(upload.size)}`)}
        </span>
      </div>
      <div className="how">
        {kind !== undefined ? (
          <Badge kind={kind}>{text.states[state as keyof typeof text.states]}</Badge>
        ) : status ? (
          <StatusBadge status={status} />
        ) : (
          <Badge kind={state === "failed" ? "bad" : "accent"}>
            {state === "failed" ? text.states.failed : text.states.uploaded}
          </Badge>
        )}
        {state === "sending" && (
          <progress value={upload.sent} max={upload.size} aria-label={text.sentOf(name)} />
        )}
        {state === "processing" && <progress aria-label={text.beingIndexed(name)} />}
      </div>
      <div className="act">
        {(state === "waiting" || state === "sending") && (
          <Button aria-label={text.cancelOne(name)} onClick={() => uploads.cancel(number)}>
            {text.cancel}
          </Button>
        )}
        {state === "exists" && (
          <>
            <Button aria-label={text.keepBothOf(name)} onClick={() => uploads.decide(api, number, "both")}>
              {text.keepBoth}
            </Button>{" "}
            <Button
              kind="danger"
              aria-label={text.replaceOne(name)}
              onClick={() => uploads.decide(api, number, "replace")}
            >
              {text.replace}
            </Button>
          </>
        )}
        {!upload.isLost && (state === "cancelled" || (state === "failed" && upload.canSucceed)) && (
          <Button aria-label={text.tryOneAgain(name)} onClick={() => uploads.retry(api, number)}>
            {text.tryAgain}
          </Button>
        )}
      </div>
    </>
  );
});
