/** What happened to a document, with how long each step took. */
import type { DocumentDetail } from "../../api/types";
import { messages } from "../../messages";
import { slice } from "../../parts/spans";
import { isFinal, meaning, type Status } from "../../status";

export interface Step {
  at: string;
  status: Status | null;
  text: string;
  reason: string | null;
  /** How long it took, for a step that is work and has ended. */
  seconds: number | null;
}

export function steps(document: DocumentDetail): Step[] {
  const written = document.last_modified;
  const lines: Omit<Step, "seconds">[] = document.history.map((line) => ({
    at: line.at,
    status: line.status,
    text: meaning(line.status).label,
    reason: line.reason ?? null,
  }));
  if (written) lines.push({ at: written, status: null, text: messages("documents").written, reason: null });
  lines.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  return lines.map((line, number) => {
    const next = lines[number + 1];
    const isWork = next !== undefined && line.status !== null && !isFinal(line.status);
    const reason = line.reason === next?.reason ? null : line.reason; // the last of several has it
    return { ...line, reason, seconds: isWork ? (Date.parse(next.at) - Date.parse(line.at)) / 1000 : null };
  });
}

const WORDS = 14;
const CHARACTERS = 160;

/** A question that the document should be found with: its title and its first words. */
export function probe(title: string | null | undefined, text: string): string {
  const words = `${title ?? ""} ${text}`.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const first = [...new Set(words)].slice(0, WORDS).join(" ");
  return slice(first, 0, CHARACTERS).trim();
}
