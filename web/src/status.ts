/** What the statuses of documents mean to people. */
import type { DocumentSummary } from "./api/types";
import { messages } from "./messages";

export type Status = DocumentSummary["status"];

interface Meaning {
  badge: "" | "good" | "warn" | "bad" | "accent";
  isFinal: boolean;
}

/** In the order in which they are listed. */
const MEANINGS: Record<Status, Meaning> = {
  INDEXED: { badge: "good", isFinal: true },
  PARTIALLY_INDEXED: { badge: "warn", isFinal: true },
  UPLOADED: { badge: "accent", isFinal: false },
  WAITING: { badge: "accent", isFinal: false },
  SUBMITTING: { badge: "accent", isFinal: false },
  INDEXING: { badge: "accent", isFinal: false },
  DELETING: { badge: "accent", isFinal: false },
  FAILED: { badge: "bad", isFinal: true },
  DELETED: { badge: "", isFinal: true },
};

export const STATUSES = Object.keys(MEANINGS) as Status[];

/** The statuses by which documents can be listed. */
export const LISTED = STATUSES.filter((status) => status !== "UPLOADED");
export type Listed = (typeof LISTED)[number];

/** The status of that name, if documents can be listed by it. */
export function listedStatus(name: string | null): Listed | null {
  return LISTED.find((status) => status === name) ?? null;
}

export function meaning(status: Status): Meaning & { label: string } {
  return { ...MEANINGS[status], label: messages("parts").statuses[status] };
}

export function isFinal(status: Status): boolean {
  return MEANINGS[status].isFinal;
}

/** Whether searches do not find all of such a document, for a reason. */
export function isLacking(status: Status): boolean {
  return status === "PARTIALLY_INDEXED" || status === "FAILED";
}

/** Whether the console knows the status; a newer service may have others. */
export function isStatus(name: string): name is Status {
  return name in MEANINGS;
}

/** The badges of jobs that have ended, by status. */
export const JOB_BADGES: Record<string, string> = {
  SUCCEEDED: "good",
  COMPLETE: "good",
  FAILED: "bad",
  INCOMPLETE: "warn",
};
