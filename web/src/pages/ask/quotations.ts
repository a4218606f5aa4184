/** What an answer quotes, by document: the current version first, those that it replaces behind it. */
import type { AskResponse, Sentence, Source } from "../../api/types";
import { documentName } from "../../parts/names";

export interface Quoted {
  /** Words of the document, without the quotation marks around them. */
  text: string;
  source: Source;
}

export interface Group {
  source: Source;
  quoted: Quoted[];
  /** Earlier versions of the same document. */
  older: Group[];
}

export interface Quotations {
  groups: Group[];
  /** Sentences that quote nothing. */
  others: Sentence[];
}

/** The quotations of an answer that consists of them; null if a model wrote it, or if none was verified. */
export function quotations(response: AskResponse): Quotations | null {
  if (!response.answerer.quotes) return null;
  const documents = new Map<string, Group>();
  const others: Sentence[] = [];
  for (const sentence of response.sentences) {
    const quoted = (sentence.quotations ?? []).flatMap(({ text, source: number }) => {
      const source = response.sources.find((each) => each.number === number);
      return source ? [{ text, source }] : [];
    });
    if (quoted.length === 0) others.push(sentence);
    for (const each of quoted) {
      const key = each.source.source ?? String(each.source.number);
      const group = documents.get(key) ?? { source: each.source, quoted: [], older: [] };
      group.quoted.push(each);
      documents.set(key, group);
    }
  }
  if (documents.size === 0) return null;
  const groups = fold([...documents.values()], response.searched_question ?? response.question);
  const isConflictShown = groups.some((group) =>
    group.older.some((older) => otherFigure(response, group, older)),
  );
  return {
    groups,
    others: isConflictShown ? others.filter((sentence) => sentence.citations.length < 2) : others,
  };
}

/** Put earlier versions behind the current one, where the first of them was, unless the question names one of them. */
function fold(groups: readonly Group[], question: string): Group[] {
  const folded: Group[] = [];
  for (const group of groups) {
    const at = folded.findIndex((each) => isVersionOf(each.source, group.source));
    const other = folded[at];
    if (!other || [group, other, ...other.older].some((each) => isNamed(each.source, question)))
      folded.push(group);
    else if (isNewer(group.source, other.source))
      folded[at] = { ...group, older: [{ ...other, older: [] }, ...other.older] };
    else folded[at] = { ...other, older: [...other.older, group] };
  }
  return folded;
}

/** Whether two documents differ in the numbers of their names alone, and one of them is known to be newer. */
function isVersionOf(one: Source, other: Source): boolean {
  return stem(one) === stem(other) && (isNewer(one, other) || isNewer(other, one));
}

function stem({ source }: Source): string {
  return (source ?? "").toLowerCase().replace(/\d+/g, "#");
}

function isNewer(one: Source, other: Source): boolean {
  const [a, b] = [attribute(one, "current"), attribute(other, "current")];
  if (typeof a === "boolean" && typeof b === "boolean" && a !== b) return a;
  const [own, others] = [version(one), version(other)];
  return own !== null && others !== null && own.localeCompare(others, "en", { numeric: true }) > 0;
}

function isNamed(source: Source, question: string): boolean {
  const own = version(source);
  return own !== null && own.length > 1 && question.includes(own);
}

/** The attributes that say which version a document is, the first that it has. */
const VERSIONS = ["version", "date", "year"];

function attribute({ metadata }: Pick<Source, "metadata">, key: string): unknown {
  return metadata?.[key];
}

function version(source: Pick<Source, "metadata">): string | null {
  const value = VERSIONS.map((key) => attribute(source, key)).find((each) =>
    ["string", "number"].includes(typeof each),
  );
  return value === undefined ? null : String(value);
}

/** What distinguishes a document from its other versions; null if nothing does. */
export function edition(source: Pick<Source, "source" | "metadata">): {
  isCurrent: boolean;
  version: string | null;
} {
  const own = version(source);
  const isCurrent = attribute(source, "current") === true;
  return {
    isCurrent,
    version: own !== null && !isCurrent && !documentName(source.source).includes(own) ? own : null,
  };
}

/** A figure that an earlier version states and the current one contradicts, with its version; null if none is known. */
export function otherFigure(
  { conflicts = [] }: Pick<AskResponse, "conflicts">,
  current: Group,
  older: Group,
): { figure: string; version: string | null } | null {
  const cited = (group: Group, numbers: readonly number[]) =>
    group.quoted.some(({ source }) => numbers.includes(source.number));
  if (!conflicts.some(({ citations }) => cited(current, citations))) return null;
  const conflict = conflicts.find(({ citations }) => cited(older, citations) && !cited(current, citations));
  return conflict ? { figure: conflict.figure, version: version(older.source) } : null;
}

/** What was verified of an answer as a whole. */
export interface Checked {
  /** "quoted": every sentence is the words of a document. */
  kind: "quoted" | "cited";
  supported: number;
  all: number;
  documents: number;
}

/** null: the answer claims nothing, such as "The documents do not say". */
export function check(response: AskResponse): Checked | null {
  const claims = response.sentences.filter((each) => each.unsupported || each.citations.length > 0);
  const isWrong = (each: Sentence) =>
    each.unsupported || each.support === "not supported" || each.support === "partly";
  const wrong = claims.filter(isWrong);
  if (claims.length === 0) return null;
  const cited = new Set(claims.filter((each) => !isWrong(each)).flatMap((each) => each.citations));
  const documents = new Set(
    response.sources.filter((each) => cited.has(each.number)).map((each) => each.source ?? each.number),
  ).size;
  const quoted = claims.flatMap((each) => (each.quotations ?? []).filter(({ source }) => source !== null));
  if (response.answerer.quotes && wrong.length === 0 && quoted.length > 0)
    return { kind: "quoted", supported: quoted.length, all: quoted.length, documents };
  return { kind: "cited", supported: claims.length - wrong.length, all: claims.length, documents };
}

/** From which confidence an answer has three bars, and two. Below the second, the passages may not be the answer. */
export const CONFIDENT = [0.8, 0.6] as const;

export function level(confidence: number): 1 | 2 | 3 {
  return confidence >= CONFIDENT[0] ? 3 : confidence >= CONFIDENT[1] ? 2 : 1;
}
