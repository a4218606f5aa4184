/** Where people may upload to, and who sees it there: the prefixes and labels of the access file. */
import type { Me } from "../../api/types";
import { messages } from "../../messages";
import { type Attributes, parsePairs } from "../../parts/attributes";

export type WritablePrefix = Me["writable"][number];

export interface Form {
  /** The prefix that was chosen; null before a choice. */
  prefix: string | null;
  folder: string;
  /** The label; empty for that of the prefix. */
  label: string;
  corpus: string;
  version: string;
  others: string;
}

export const NO_FORM: Form = { prefix: null, folder: "", label: "", corpus: "", version: "", others: "" };

/** The prefix of the form, or the first one; null if people may write nowhere. */
export function chosenPrefix(form: Form, writable: readonly WritablePrefix[]): WritablePrefix | null {
  return writable.find(({ prefix }) => prefix === form.prefix) ?? writable[0] ?? null;
}

/** The prefix that a document's key is under, of those where people may write; null if it is under none. */
export function prefixOf(key: string, writable: readonly WritablePrefix[]): WritablePrefix | null {
  const found = writable.filter(({ prefix }) => key.startsWith(prefix));
  return found.sort((a, b) => b.prefix.length - a.prefix.length)[0] ?? null;
}

/** Where the files go: the prefix, and the folder in it. */
export function folderOf(form: Form, writable: readonly WritablePrefix[]): string {
  const prefix = chosenPrefix(form, writable)?.prefix ?? "";
  return `${prefix}${form.folder.replace(/^\/+/, "")}`;
}

/** The attributes that the form says. A string is what is wrong. */
export function attributesOf(form: Form, me: Pick<Me, "writable" | "label_attribute">): Attributes | string {
  const found = parsePairs(form.others);
  if (typeof found === "string") return found;
  const name = me.label_attribute ?? null;
  if (name !== null && name in found) return messages("documents").chooseAbove(name);
  const prefix = chosenPrefix(form, me.writable);
  const label = prefix?.labels.includes(form.label) ? form.label : "";
  if (prefix && prefix.labels.length > 0 && prefix.default === null && !label)
    return messages("documents").chooseWhoSees;
  return {
    ...(form.corpus.trim() ? { corpus: form.corpus.trim() } : {}),
    ...(form.version.trim() ? { version: form.version.trim() } : {}),
    ...(name !== null && label ? { [name]: label } : {}),
    ...found,
  };
}
