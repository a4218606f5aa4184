/** The attributes of a document, changed in place. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import type { DocumentDetail } from "../../api/types";
import { useApp, useKept, useRepeated } from "../../context";
import { messages, useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { type Attributes, parseValue, writeValue } from "../../parts/attributes";
import { Icon } from "../../parts/Icon";
import { plain } from "../../parts/names";
import { Button, Card, Form } from "../../parts/shapes";
import { Notice } from "../../parts/states";
import { isFinal } from "../../status";
import { prefixOf } from "./folders";
import { LabelSelect } from "./LabelSelect";

const POLL_SECONDS = 2;

/** What was saved, and which record it will replace. */
interface Saved {
  attributes: Attributes;
  updatedAt: string | null;
}

interface Row {
  key: number;
  name: string;
  value: string;
}

interface Problem {
  /** Row of the field; null for the whole form. */
  key: number | null;
  text: string;
}

interface Props {
  document: DocumentDetail;
  canWrite: boolean;
  onSaved: () => void;
}

export function AttributesCard({ document, canWrite, onSaved }: Props) {
  const text = useMessages("documents").attributes;
  const [isEdited, setEdited] = useState(false);
  const [saved, setSaved] = useState<Saved | null>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const wasEdited = useRef(false);
  useEffect(() => {
    if (wasEdited.current && !isEdited) opener.current?.focus();
    wasEdited.current = isEdited;
  }, [isEdited]);
  const isPending = saved !== null && (saved.updatedAt === document.updated_at || !isFinal(document.status));
  useRepeated(POLL_SECONDS, isPending, onSaved);
  const attributes = isPending ? saved.attributes : document.attributes;
  return (
    <Card
      title={text.title}
      aside={
        canWrite &&
        !isEdited && (
          <Button ref={opener} onClick={() => setEdited(true)}>
            {text.edit}
          </Button>
        )
      }
    >
      {isEdited ? (
        <Editor
          document={document}
          attributes={attributes}
          onClose={() => setEdited(false)}
          onSaved={(next) => {
            setSaved({ attributes: next, updatedAt: document.updated_at });
            setEdited(false);
            onSaved();
          }}
        />
      ) : (
        <Shown attributes={attributes} />
      )}
      {isPending && !isEdited && <Notice>{text.pending}</Notice>}
    </Card>
  );
}

function Shown({ attributes }: { attributes: Attributes }) {
  const text = useMessages("documents").attributes;
  const entries = Object.entries(attributes);
  if (entries.length === 0) return <p className="small">{text.none}</p>;
  return (
    <dl className="attributes">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt dir="auto">{plain(name)}</dt>
          <dd dir="auto">{plain(Array.isArray(value) ? value.join(", ") : String(value))}</dd>
        </div>
      ))}
    </dl>
  );
}

interface EditorProps {
  document: DocumentDetail;
  attributes: Attributes;
  onClose: () => void;
  onSaved: (attributes: Attributes) => void;
}

function Editor({ document, attributes, onClose, onSaved }: EditorProps) {
  const shared = useMessages("documents");
  const text = shared.attributes;
  const { client, kept, me } = useApp();
  const prefix = prefixOf(document.key, me.writable);
  const label = prefix && prefix.labels.length > 0 ? (me.label_attribute ?? null) : null;
  const announce = useAnnounce();
  const draft = `attributes.${document.id}`;
  const [rows, setRows] = useKept<Row[]>(draft, rowsOf(attributes, label));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("select, input")?.focus(), []);
  const labelRow = rows.find((row) => row.name === label);
  const change = (key: number, part: Partial<Row>) =>
    setRows(rows.map((row) => (row.key === key ? { ...row, ...part } : row)));
  const fail = (next: Problem) => {
    setProblem(next);
    form.current?.querySelector<HTMLInputElement>(`[data-row="${next.key}"]`)?.focus();
  };
  const close = () => {
    kept.remove(draft);
    onClose();
  };
  const save = async () => {
    const read = fromRows(rows, label);
    if ("text" in read) return fail(read);
    if (JSON.stringify(sorted(read.attributes)) === JSON.stringify(sorted(attributes))) return close();
    setSaving(true);
    setProblem(null);
    try {
      await client.patch("/api/documents/{id}", { id: document.id }, { attributes: read.attributes });
      announce(text.saved);
      kept.remove(draft);
      onSaved(read.attributes);
    } catch (error) {
      const reason = (error instanceof ApiError ? error.message : String(error)).replace(/^attributes: /, "");
      fail({ key: rowOf(rows, reason), text: reason });
    } finally {
      setSaving(false);
    }
  };
  return (
    <Form
      ref={form}
      className="stack"
      onSubmit={save}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      {rows.map((row) => {
        const isWrong = problem?.key === row.key;
        if (prefix && row === labelRow)
          return (
            <div key={row.key} className="attribute-label">
              <LabelSelect
                prefix={prefix}
                value={String(parseValue(row.value))}
                onChange={(next) => change(row.key, { value: next && writeValue(next) })}
              />
              {isWrong && <Wrong text={problem.text} />}
            </div>
          );
        return (
          <div key={row.key} className="attribute-row">
            {(["name", "value"] as const).map((part) => (
              <input
                key={part}
                aria-label={part === "name" ? text.name : text.valueOf(row.name)}
                data-row={part === "value" ? row.key : undefined}
                dir="auto"
                placeholder={text[part]}
                value={row[part]}
                aria-invalid={isWrong}
                aria-describedby={isWrong ? "attribute-problem" : undefined}
                onChange={(event) => change(row.key, { [part]: event.target.value })}
              />
            ))}
            <Button
              kind="quiet"
              aria-label={text.removeOne(row.name)}
              onClick={() => setRows(rows.filter((each) => each.key !== row.key))}
            >
              <Icon name="close" size={16} />
            </Button>
            {isWrong && <Wrong text={problem.text} />}
          </div>
        );
      })}
      {problem?.key === null && <Wrong text={problem.text} />}
      <p className="small">{text.hint}</p>
      <div className="row">
        <Button type="submit" kind="primary" disabled={isSaving}>
          {isSaving ? text.saving : text.save}
        </Button>
        <Button onClick={() => setRows([...rows, { key: nextKey(rows), name: "", value: "" }])}>
          {text.add}
        </Button>
        <Button onClick={close}>{shared.cancel}</Button>
      </div>
    </Form>
  );
}

function Wrong({ text }: { text: string }) {
  return (
    <p id="attribute-problem" className="wrong" role="alert">
      {text}
    </p>
  );
}

/** A row for each attribute. That of the label is the first, also if the document has the default. */
function rowsOf(attributes: Attributes, label: string | null): Row[] {
  const all = label === null ? attributes : { [label]: "", ...attributes };
  const rows = Object.entries(all).map(([name, value], key) => ({
    key,
    name,
    value: value === "" ? "" : writeValue(value),
  }));
  return rows.length > 0 ? rows : [{ key: 0, name: "", value: "" }];
}

function nextKey(rows: readonly Row[]): number {
  return Math.max(-1, ...rows.map((row) => row.key)) + 1;
}

function fromRows(rows: readonly Row[], label: string | null): { attributes: Attributes } | Problem {
  const text = messages("documents").attributes;
  const attributes: Attributes = {};
  for (const { key, name, value } of rows) {
    const trimmed = name.trim();
    if ((!trimmed || trimmed === label) && !value.trim()) continue;
    if (!trimmed) return { key, text: text.needsName };
    if (!value.trim()) return { key, text: text.needsValue };
    if (trimmed in attributes) return { key, text: text.twice };
    attributes[trimmed] = parseValue(value);
  }
  return { attributes };
}

/** The row that a message of the service is about. */
function rowOf(rows: readonly Row[], text: string): number | null {
  return rows.find((row) => row.name.trim() && text.includes(row.name.trim()))?.key ?? null;
}

function sorted(attributes: Attributes): unknown[] {
  return Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1));
}
