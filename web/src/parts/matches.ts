/** The words of a question where a text has them, in any of their forms. */
import { beginning, length } from "./spans";

export interface Range {
  start: number;
  end: number;
}

/** Words that say nothing of what is looked for. A question is in English or German more often than not. */
const COMMON = new Set(
  "a an and are as at be by can do does each every everyone for from had has have how i if in is it its many may me much must my of on one or our \
shall should that the their there they this to was we what when where which who why will with you your \
aber als am an auch auf aus bei beim das dass dem den der des die dies diese diesem diesen dieser dürfen ein eine \
einem einen einer es für gibt habe haben hat ich ihr ihre im in ist kann können man mein meine mit muss müssen nach \
nicht oder sich sie sind so um und unser unsere vom von wann war warum was welche welcher wenn wer werden wie wieviel \
wir wird wo zu zum zur"
    .split(" ")
    .map(folded),
);

/** What two forms of a word have in common at least: "approve", "approvals". */
const LEAST_STEM = 4;
const LEAST_SHARE = 0.6;

interface Word extends Range {
  text: string;
}

/** Its words with their places, counted in characters. Languages without spaces have words too. */
function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let at = 0;
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(
    text,
  )) {
    const end = at + Array.from(segment).length;
    if (isWordLike) words.push({ text: folded(segment), start: at, end });
    at = end;
  }
  return words;
}

/** Without case and accents. */
function folded(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "")
    .toLowerCase();
}

function isSame(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (long.startsWith(short) && long.length - short.length <= 1) return short.length >= 3 || short === long;
  let common = 0;
  while (common < short.length && short[common] === long[common]) common += 1;
  return common >= LEAST_STEM && common >= long.length * LEAST_SHARE;
}

/** Where a text has words of a question; words next to each other are one range. */
export function matches(question: string, text: string): Range[] {
  const wanted = wordsOf(question)
    .map((word) => word.text)
    .filter((word) => !COMMON.has(word));
  const found: Range[] = [];
  let before = -2;
  wordsOf(text).forEach(({ text: word, start, end }, index) => {
    if (!wanted.some((each) => isSame(each, word))) return;
    const last = found.at(-1);
    if (last && before === index - 1 && start - last.end <= 1) last.end = end;
    else found.push({ start, end });
    before = index;
  });
  return found;
}

/** How much is shown before the words that match, at most. */
const LEAD = 60;

/** The part of a text with most of the matches, which begins at a line or a word a little before the first of them. */
export function bestPart(text: string, marked: readonly Range[], limit: number): Range {
  const characters = Array.from(text);
  const start = startOf(characters, marked, limit);
  return { start, end: start + length(beginning(characters.slice(start).join(""), limit)) };
}

function startOf(characters: readonly string[], marked: readonly Range[], limit: number): number {
  const worth = (from: number) =>
    marked
      .filter((each) => each.start >= from && each.end <= from + limit - LEAD)
      .reduce((sum, each) => sum + each.end - each.start, 0);
  const best = marked.reduce((found, { start }) => (worth(start) > worth(found) ? start : found), 0);
  if (best <= LEAD) return 0;
  const lead = characters.slice(best - LEAD, best);
  const line = lead.lastIndexOf("\n");
  const word = line >= 0 ? line : lead.findIndex((each) => /\s/.test(each));
  return best - LEAD + word + 1;
}

/** A text of Markdown without the signs of its headings and tables. */
export function withoutSigns(text: string): string {
  return text
    .replace(/^#{1,6}( +|$)/gm, "")
    .replace(/^[ \t]*\|?(?:[ \t]*:?-{3,}:?[ \t]*\|)+[ \t]*(?:\n|$)/gm, "")
    .replace(/[ \t]*\|[ \t]*$|^[ \t]*\|[ \t]*/gm, "")
    .replace(/[ \t]+\|[ \t]+/g, " · ");
}

/** A text of Markdown in one line: paragraphs and the cells of tables follow each other. */
export function inOneLine(text: string): string {
  return withoutSigns(text).replace(/([.!?:]?)\s*\n\s*\n\s*/g, (_, end) => (end ? `${end} ` : " · "));
}
