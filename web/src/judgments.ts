/** Judgments of results and answers: what people judged, by question. */
import type { Body } from "./api/calls";
import type { Client } from "./api/client";
import type { components } from "./api/schema";

/** A judgment as the interface keeps it: of a document for a question, or of the answer to it. */
export interface Judgment {
  query_id: string;
  query: string;
  /** The document's URI; null for the answer. */
  document: string | null;
  /** 0 (irrelevant) to 3 (answers it fully); of an answer, 0 (bad) or 1 (good), or null if only its question is kept. */
  grade: number | null;
  /** What a right answer says, if somebody wrote it. */
  reference: string | null;
  at: string;
  by: string;
}

/** A judgment to store; without a grade, the stored one is deleted unless the question is kept. */
export interface Change {
  query_id: string;
  query: string;
  document: string | null;
  grade: number | null;
  reference: string | null;
  isKept?: boolean;
}

export interface Question {
  id: string;
  text: string;
  grades: ReadonlyMap<string, number>;
  answer: { grade: number | null; reference: string | null } | null;
}

/** Whether a question is one to ask again: its answer is bad, or it was kept without a grade. */
export function isRegression({ answer }: Pick<Question, "answer">): boolean {
  return answer !== null && answer.grade !== 1;
}

/** One place for a judgment: a later one of the same place replaces it. */
export function placeOf({ query_id, document }: Pick<Judgment, "query_id" | "document">): string {
  return JSON.stringify([query_id, document]);
}

/** Judgments with changes that are not stored yet. */
export function withChanges(stored: readonly Judgment[], changes: readonly Change[]): Judgment[] {
  if (changes.length === 0) return [...stored];
  const places = new Map(stored.map((judgment) => [placeOf(judgment), judgment]));
  for (const change of changes) {
    const place = placeOf(change);
    if (change.grade === null && !change.isKept) places.delete(place);
    else places.set(place, { ...change, at: new Date().toISOString(), by: "" });
  }
  return [...places.values()];
}

/** The questions of judgments, by text. If several people judged the same, the latest judgment counts. */
export function questions(judgments: readonly Judgment[]): Question[] {
  const found = new Map<string, Question & { grades: Map<string, number> }>();
  const ordered = [...judgments].sort((a, b) => a.at.localeCompare(b.at));
  for (const { query_id, query, document, grade, reference } of ordered) {
    const question = found.get(query_id) ?? { id: query_id, text: query, grades: new Map(), answer: null };
    if (document === null) question.answer = { grade, reference };
    else if (grade !== null) question.grades.set(document, grade);
    found.set(query_id, question);
  }
  return [...found.values()].sort((a, b) => a.text.localeCompare(b.text) || a.id.localeCompare(b.id));
}

/** The identifier of a question: that of the same text, if it was judged before. */
export function questionId(text: string, known: readonly Question[]): string {
  const plain = normalised(text);
  return known.find((question) => normalised(question.text) === plain)?.id ?? `q${hash(plain)}`;
}

/** The next question that waits for a judgment; without one, the saved question after this one, in a circle. */
export function nextQuestion(
  text: string,
  waiting: readonly string[],
  known: readonly Question[],
): string | null {
  const saved = known.map((question) => question.text);
  const judged = new Set(saved.map(normalised));
  const open = following(text, waiting).find((each) => !judged.has(normalised(each)));
  return open ?? following(text, saved)[0] ?? null;
}

function following(text: string, all: readonly string[]): string[] {
  const plain = normalised(text);
  const place = all.findIndex((each) => normalised(each) === plain);
  return place < 0 ? [...all] : [...all.slice(place + 1), ...all.slice(0, place)];
}

function normalised(text: string): string {
  return text.normalize("NFC").trim().replace(/\s+/g, " ").toLowerCase();
}

/** 53 bits that depend on every character. Source: cyrb53 by bryc, public domain. */
function hash(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
}

/** Store a change. */
export async function store(client: Client, change: Change): Promise<void> {
  const { query_id, query, document, grade, reference, isKept: kept = false } = change;
  const body: Body<"put", "/api/judgments"> =
    document === null
      ? { query_id, query, answer_grade: grade === null ? null : grade > 0 ? 1 : 0, reference, kept }
      : { query_id, query, document, grade };
  await client.put("/api/judgments", {}, body);
}

type Page = components["schemas"]["JudgmentList"];

/** Read every judgment of the caller, or with `all` those of everybody. */
export async function load(client: Client, all: boolean, signal: AbortSignal): Promise<Judgment[]> {
  const found: Judgment[] = [];
  let next_token: string | null = null;
  do {
    const page: Page = await client.get("/api/judgments", { all, next_token }, signal);
    for (const { query_id, query, at, by, document, grade, answer_grade, reference } of page.judgments)
      found.push({
        query_id,
        query,
        document,
        grade: document === null ? answer_grade : grade,
        reference,
        at,
        by,
      });
    next_token = page.next_token;
  } while (next_token);
  return found;
}
