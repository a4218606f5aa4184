/**
 * Questions that the documents can answer for a person: those of the settings, and those that the documents themselves
 * ask or define. Each is searched before it is shown.
 */
import type { Client } from "../api/client";

/** A document that was found. */
interface Found {
  content: string;
  passages?: readonly { content: string }[] | null;
}

const MAX_SHOWN = 4;

/** At most this many questions of a list, and of documents, are searched. */
const MAX_SEARCHED = 8;

const MAX_LENGTH = 90;

/** The best documents of each probe are read. Of 250 pages of guides, 50 had 3 of all 5 questions. */
const PROBED = 50;

/** A heading or a line of its own that asks: `## How do I …?`, `**Who …?**`, `Q: When …?`, `3. Warum …?` */
const ASKED =
  /^[ \t]*(?:#{1,6}[ \t]+|[-*][ \t]+|\d+(?:\.\d+)*[.)][ \t]+)?(?:\*\*|__)?(?:[QF]\d*[:.][ \t]*)?((?:How|What|When|Where|Which|Who|Why|Wie|Was|Wann|Wo|Wer|Wem|Wen|Warum|Welche[nrs]?|Wofür|Wohin)[ \t][^?\n]*\?)(?:\*\*|__)?[ \t]*#*[ \t]*$/gmu;

/** Words without which a question asks nothing that can be understood outside of its document. */
const EMPTY =
  /^(?:about|been|could|does|doing|done|from|have|into|just|like|long|look|many|mean|much|must|need|next|only|over|shall|should|some|take|than|that|they|what|when|where|which|whom|want|will|with|work|would|your|aber|alle|auch|bitte|dann|denn|dürfen|eine[mnrs]?|euch|euer|haben|kann|können|lange|machen|mein|muss|müssen|nach|nächste|nicht|oder|oft|sein|sich|sind|soll|sollen|tun|über|viel|viele|wann|warum|welche[nrs]?|wenn|werden|wird|wurde)$/iu;

/** Words that refer to what stands around the question. */
const REFERRING =
  /(?<!\p{L})(?:it|its|this|that|these|those|they|them|their|he|she|here|above|below|following|else|diese[mnrs]?|dies|(?<!gibt )es|ihn|ihm|ihnen|hier|oben|unten|folgende[mnrs]?)(?!\p{L})/iu;

/** A sentence that begins by saying what something is: "A service level is the …", "Ein Gleittag ist ein …" */
const DEFINED =
  /(?:^|[.:!?][ \t\n]+|\n)(?<article>An?|Eine?)[ \t]+(?<term>(?:[\p{L}\d-]+[ \t]+){0,2}[\p{L}\d-]+)[ \t]+(?:is|ist)[ \t]+(?:an?|the|one|eine?|der|die|das)[ \t]+(?:[\p{L}\d-]+[,;]?[ \t\n]+){3}/gu;

/** "“Confidential Information” means …" */
const TERM = /[“„"](?<term>[\p{Lu}][^“”„"\n?]{2,40})[”“"][ \t]+(?<verb>means|bedeutet|bezeichnet)(?!\p{L})/gu;

/** What can be said of anything, and is no term of the document. */
const VAGUE =
  /(?<!\p{L})(?:additional|another|better|common|copy|different|example|few|first|given|good|great|key|large|list|lot|major|more|new|note|number|only|other|question|second|set|similar|simple|single|small|such|typical|way|beispiel|erste[mnrs]?|gute[mnrs]?|neue[mnrs]?|liste|weitere[mnrs]?)(?!\p{L})/iu;

/** The questions of documents that were found, at most one for each; those that documents ask come first. */
export function candidates(results: readonly Found[]): string[] {
  const asked = new Set<string>();
  const defined = new Set<string>();
  for (const text of results.map(textOf)) {
    const isNew = (question: string) => !asked.has(question) && !defined.has(question);
    const own = questionsIn(text).find(isNew);
    const question = own ?? definitionsIn(text).find(isNew);
    if (question) (own ? asked : defined).add(question);
  }
  return [...asked, ...defined];
}

function textOf({ content, passages }: Found): string {
  return (passages ?? [{ content }]).map((each) => each.content).join("\n\n");
}

/** The questions that a text has as headings or lines of their own. */
export function questionsIn(text: string): string[] {
  return [...text.matchAll(ASKED)]
    .map((match) => (match[1] ?? "").replace(/[`*]|\\(?=\W)/g, "").replace(/\s+/g, " "))
    .filter((question) => question.length <= MAX_LENGTH && !REFERRING.test(question) && saysEnough(question));
}

function saysEnough(question: string): boolean {
  const words = question.match(/[\p{L}\d-]+/gu)?.slice(1) ?? [];
  return words.filter((word) => isName(word) || (word.length > 3 && !EMPTY.test(word))).length > 1;
}

/** Abbreviations such as VPN. */
function isName(word: string): boolean {
  return /\p{Lu}{2}/u.test(word);
}

/** Questions for the terms of several words that a text defines, and uses. */
export function definitionsIn(text: string): string[] {
  const isUsed = (term: string) => text.toLowerCase().split(term.toLowerCase()).length > 2;
  const terms = [...text.matchAll(TERM)]
    .filter(({ groups: { term = "" } = {} }) => term.includes(" ") && isUsed(term))
    .map(({ groups: { term, verb } = {} }) =>
      verb === "means" ? `What does “${term}” mean?` : `Was bedeutet „${term}“?`,
    );
  const things = [...text.matchAll(DEFINED)].flatMap(({ groups: { article = "", term = "" } = {} }) =>
    /[ -]|^.*\p{Ll}\p{Lu}/u.test(term) && !VAGUE.test(term) && !REFERRING.test(term) && isUsed(term)
      ? [`${article.startsWith("A") ? "What is" : "Was ist"} ${article.toLowerCase()} ${term}?`]
      : [],
  );
  return [...terms, ...things];
}

/**
 * Search questions in their order, as many at once as are still missing, until enough have their answer: first those of
 * the list, then those of the documents that the probes find.
 */
export async function answerable(
  client: Pick<Client, "post">,
  listed: readonly string[],
  probes: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const found: string[] = [];
  const search = async (
    questions: readonly string[],
    isAnswer: (question: string, first: Found) => boolean,
  ) => {
    const isAnswered = async (query: string) => {
      const { answerable, results } = await client.post("/api/retrieve", { query, top_k: 1 }, signal);
      return answerable !== false && results[0] !== undefined && isAnswer(query, results[0]);
    };
    const left = questions.filter((each) => !found.includes(each)).slice(0, MAX_SEARCHED);
    while (left.length > 0 && found.length < MAX_SHOWN) {
      const next = left.splice(0, MAX_SHOWN - found.length);
      const answered = await Promise.all(next.map(isAnswered));
      found.push(...next.filter((_, index) => answered[index]));
    }
  };
  await search(listed, () => true);
  if (found.length === MAX_SHOWN) return found;
  const probe = { top_k: PROBED, infer_filter: false };
  const read = await Promise.all(
    probes.map((query) => client.post("/api/retrieve", { ...probe, query }, signal)),
  );
  // The document that comes first has to ask it or to define it, too.
  await search(candidates(read.flatMap(({ results }) => results)), (question, first) =>
    [...questionsIn(textOf(first)), ...definitionsIn(textOf(first))].includes(question),
  );
  return found;
}
