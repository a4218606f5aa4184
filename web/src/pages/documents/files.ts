/** Files that people choose or drop, folders included, and whether the service can read them. */

import { MEDIA_TYPES } from "../../api/facts";
import { messages } from "../../messages";
import type { IconName } from "../../parts/Icon";

export const SUFFIXES = Object.keys(MEDIA_TYPES);
export const TYPES = SUFFIXES.map((each) => each.slice(1)).join(", ");
const SIDECAR = ".metadata.json";

export interface Chosen {
  /** With the folders that were chosen: "contracts/2024/lease.pdf". */
  path: string;
  file: File;
}

export function mediaType(path: string): string | undefined {
  const types: Record<string, string> = MEDIA_TYPES;
  return types[/\.[^./]+$/.exec(path)?.[0].toLowerCase() ?? ""];
}

/** An icon for each kind of file. */
const ICONS_OF: Record<string, IconName> = {
  pdf: "page",
  md: "text",
  txt: "text",
  html: "code",
  json: "code",
  xml: "code",
  csv: "table",
  xls: "table",
  xlsx: "table",
  ppt: "slides",
  pptx: "slides",
  jpg: "picture",
  jpeg: "picture",
  png: "picture",
};

export function iconOf(key: string): IconName {
  return ICONS_OF[/\.([^./]+)$/.exec(key)?.[1]?.toLowerCase() ?? ""] ?? "file";
}

/** Why a file cannot be uploaded; null if it can. */
export function refusal(path: string, size: number): string | null {
  if (path.endsWith(SIDECAR)) return messages("documents").isSidecar;
  if (mediaType(path) === undefined) return messages("documents").unsupported(TYPES);
  return size === 0 ? messages("documents").isEmpty : null;
}

/** The key in the bucket. */
export function keyOf(folder: string, path: string): string {
  return [...folder.split("/"), ...path.split("/")].filter(Boolean).join("/");
}

/** The same name with a number: "lease.pdf" becomes "lease (2).pdf". */
export function numbered(key: string, number: number): string {
  const dot = key.lastIndexOf(".");
  return `${key.slice(0, dot)} (${number})${key.slice(dot)}`;
}

export function fromInput(files: FileList): Chosen[] {
  return Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** Read what was dropped. Call it within the event: the browser empties the list afterwards. */
export async function fromDrop(items: DataTransferItemList): Promise<Chosen[]> {
  const dropped = Array.from(items, (item) => item.webkitGetAsEntry() ?? item.getAsFile());
  return (
    await Promise.all(dropped.map((each) => (each instanceof File ? alone(each) : each ? read(each) : [])))
  ).flat();
}

/** A file that does not come from a folder, such as a picture from another page. */
function alone(file: File): Chosen[] {
  return [{ path: file.name, file }];
}

async function read(entry: FileSystemEntry): Promise<Chosen[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    // Browsers return at most 100 entries at once.
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(read))).flat();
}
