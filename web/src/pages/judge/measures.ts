/** Measures of rankings, as `ragstack eval` computes them: examples.json holds both to the same values. */

/** Grades by document: 0 is judged to be irrelevant. */
export type Grades = ReadonlyMap<string, number>;

export const DEPTH = 10;
const CONFIDENCE = 0.95;
const SAMPLES = 2000;
const SEED = 20_261_121;

/** nDCG@10 with the grades as gains and a discount of log2(rank + 1); 0 without a relevant document. */
export function ndcg(ranking: readonly string[], grades: Grades): number {
  const best = discounted([...grades.values()].sort((a, b) => b - a));
  return best === 0 ? 0 : discounted(unique(ranking).map((document) => grades.get(document) ?? 0)) / best;
}

/** Share of the relevant documents that are among the first ten. */
export function recall(ranking: readonly string[], grades: Grades): number {
  const relevant = [...grades.values()].filter((grade) => grade > 0).length;
  const found = unique(ranking).filter((document) => (grades.get(document) ?? 0) > 0).length;
  return relevant === 0 ? 0 : found / relevant;
}

/** 1 / rank of the first relevant document; 0 if none is among the first ten. */
export function reciprocalRank(ranking: readonly string[], grades: Grades): number {
  const place = unique(ranking).findIndex((document) => (grades.get(document) ?? 0) > 0);
  return place < 0 ? 0 : 1 / (place + 1);
}

/** How many of the first ten were judged; measures count the others as irrelevant. */
export function judged(ranking: readonly string[], grades: Grades): { judged: number; of: number } {
  const first = unique(ranking);
  return { judged: first.filter((document) => grades.has(document)).length, of: first.length };
}

export function hasRelevant(grades: Grades | undefined): boolean {
  return [...(grades?.values() ?? [])].some((grade) => grade > 0);
}

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** The mean with its 95 % bootstrap interval over questions; the same values always give the same interval. */
export function interval(values: readonly number[]): Interval {
  const random = generator(SEED);
  const means = Array.from({ length: SAMPLES }, () => {
    let sum = 0;
    for (let drawn = 0; drawn < values.length; drawn += 1) {
      sum += values[Math.floor(random() * values.length)] ?? 0;
    }
    return sum / values.length;
  }).sort((a, b) => a - b);
  return {
    mean: mean(values),
    low: quantile(means, (1 - CONFIDENCE) / 2),
    high: quantile(means, (1 + CONFIDENCE) / 2),
  };
}

/** How much better B is than A, each question compared with itself. */
export function difference(a: readonly number[], b: readonly number[]): Interval {
  return interval(b.map((value, index) => value - (a[index] ?? 0)));
}

const FEW = 10;
const SMALLEST = 0.0005;

/** What a difference means, as a sentence. */
export function conclusion({ mean, low, high }: Interval, questions: number): string {
  const count = questions === 1 ? "1 question" : `${questions} questions`;
  if (Math.abs(mean) < SMALLEST && high - low < SMALLEST) return `A and B are equally good on ${count}.`;
  const better = Math.abs(mean) < SMALLEST ? null : mean > 0 ? "B" : "A";
  const first = better
    ? `${better} is better by ${figure(Math.abs(mean))}`
    : "A and B are equally good on average";
  if (questions < FEW) return `${first}; with ${count} this says little. Judge at least ${FEW} questions.`;
  const isCertain = low > 0 || high < 0;
  return isCertain
    ? `${first}; with ${count} this is unlikely to be chance.`
    : `${first}; with ${count} this may be chance.`;
}

/** A measure between 0 and 1 with the digits that matter: .82 */
export function figure(value: number): string {
  const digits = Math.abs(value) < 0.0995 ? 3 : 2;
  return value.toFixed(digits).replace(/^(-?)0\./, "$1.");
}

function unique(ranking: readonly string[]): string[] {
  return [...new Set(ranking)].slice(0, DEPTH);
}

function discounted(gains: readonly number[]): number {
  return gains
    .slice(0, DEPTH)
    .reduce((sum, gain, place) => sum + Math.max(gain, 0) / Math.log2(place + 2), 0);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Interpolated between its neighbours, as numpy does. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** Random numbers that a seed determines. Source: mulberry32 by Tommy Ettinger, public domain. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
