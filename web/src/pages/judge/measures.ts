/** How good rankings are. The interface computes it, as it does for `ragstack eval`. */
import type { Client } from "../../api/client";
import type { components } from "../../api/schema";
import type { Question } from "../../judgments";
import { messages } from "../../messages";
import { type Settings, toRetrieve } from "../../settings";

type Measures = components["schemas"]["Measures"];
/** Grades by document: 0 is judged to be irrelevant. */
export type Grades = ReadonlyMap<string, number>;

export const DEPTH = 10;
const AT_ONCE = 4;

export interface Measured extends Measures {
  question: Question;
  complete: boolean;
}

export interface Run {
  measured: Measured[];
  /** Questions whose search failed, with the reason. They are in no figure. */
  failed: { question: Question; reason: string }[];
}

export function hasRelevant(grades: Grades): boolean {
  return [...grades.values()].some((grade) => grade > 0);
}

/** The documents of results, best first; a passage that names none cannot be judged. */
export function rankingOf(results: readonly { source: string | null }[]): string[] {
  return results.flatMap(({ source }) => source ?? []);
}

export function measure(
  client: Pick<Client, "post">,
  documents: readonly string[],
  grades: Grades,
  signal: AbortSignal,
): Promise<Measures> {
  const body = { documents: [...documents], grades: Object.fromEntries(grades) };
  return client.post("/api/judgments/measure", body, signal);
}

/** Search every question with each of the settings, a few at a time. Throws only if it is aborted. */
export async function measureAll(
  client: Pick<Client, "post">,
  questions: readonly Question[],
  settings: readonly Settings[],
  onProgress: (done: number) => void,
  signal: AbortSignal,
): Promise<Run[]> {
  const runs = settings.map((): Run => ({ measured: [], failed: [] }));
  const jobs = settings.flatMap((each, setup) => questions.map((question) => ({ each, setup, question })));
  let done = 0;
  const work = async () => {
    for (let job = jobs.shift(); job && !signal.aborted; job = jobs.shift()) {
      const { each, setup, question } = job;
      try {
        runs[setup]?.measured.push(await measureOne(client, question, each, signal));
      } catch (error) {
        runs[setup]?.failed.push({
          question,
          reason: error instanceof Error ? error.message : String(error),
        });
      }
      done += 1;
      onProgress(done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  signal.throwIfAborted();
  return runs;
}

async function measureOne(
  client: Pick<Client, "post">,
  question: Question,
  settings: Settings,
  signal: AbortSignal,
): Promise<Measured> {
  const asked = { ...settings, question: question.text, topK: settings.topK ?? DEPTH };
  const { explain: _, ...request } = toRetrieve(asked);
  const { results, complete } = await client.post("/api/retrieve", request, signal);
  const measures = await measure(client, rankingOf(results), question.grades, signal);
  return { ...measures, question, complete };
}

/** A question as each run measured it. */
export type Compared = [Measured, ...Measured[]];

/** The questions that every run measured, so that each is compared with itself. */
export function compared(runs: readonly Run[]): Compared[] {
  const [first, ...others] = runs;
  return (first?.measured ?? []).flatMap((a): Compared[] => {
    const rest = others.flatMap(({ measured }) =>
      measured.filter(({ question }) => question.id === a.question.id),
    );
    return rest.length === others.length ? [[a, ...rest]] : [];
  });
}

/** On how many questions B is better and worse than A. */
export function conclusion(rows: readonly Compared[]): string {
  const gains = rows.map(([a, b]) => (b?.ndcg ?? 0) - a.ndcg);
  const better = gains.filter((gain) => gain > 0).length;
  const worse = gains.filter((gain) => gain < 0).length;
  if (better + worse === 0) return messages("quality").equallyGood(rows.length);
  return messages("quality").conclusion(better, worse, rows.length - better - worse);
}
