/** Search every judged question, a few at a time, and measure what was found. */
import type { Client } from "../../api/client";
import type { Question } from "../../judgments";
import { type Settings, toRetrieve } from "../../settings";
import { DEPTH, judged, ndcg, recall, reciprocalRank } from "./measures";

const AT_ONCE = 4;

export interface Measured {
  question: Question;
  ndcg: number;
  recall: number;
  reciprocalRank: number;
  /** How many of the first ten results were judged. */
  judged: number;
  of: number;
  complete: boolean;
}

export interface Run {
  measured: Measured[];
  /** Questions whose search failed, with the reason. They are in no figure. */
  failed: { question: Question; reason: string }[];
}

/** Search with each of the settings; the results are in their order. Throws only if it is aborted. */
export async function measure(
  client: Pick<Client, "post">,
  questions: readonly Question[],
  settings: readonly Settings[],
  onProgress: (done: number) => void,
  signal: AbortSignal,
): Promise<Run[]> {
  const jobs = settings.flatMap((each, setup) => questions.map((question) => ({ each, setup, question })));
  const found: (Measured | string)[][] = settings.map(() => new Array(questions.length));
  let started = 0;
  let done = 0;
  const work = async () => {
    for (let job = jobs[started]; job && !signal.aborted; job = jobs[started]) {
      const { each, setup, question } = job;
      const place = started % questions.length;
      started += 1;
      const row = found[setup] as (Measured | string)[];
      row[place] = await one(client, question, each, signal);
      done += 1;
      onProgress(done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  signal.throwIfAborted();
  return found.map((row) => ({
    measured: row.filter((each) => typeof each !== "string"),
    failed: row.flatMap((reason, place) => {
      const question = questions[place];
      return typeof reason === "string" && question ? [{ question, reason }] : [];
    }),
  }));
}

async function one(
  client: Pick<Client, "post">,
  question: Question,
  settings: Settings,
  signal: AbortSignal,
): Promise<Measured | string> {
  const asked = { ...settings, question: question.text, topK: settings.topK ?? DEPTH };
  try {
    const { explain: _, ...request } = toRetrieve(asked);
    const { results, complete } = await client.post("/api/retrieve", request, signal);
    const ranking = results.flatMap(({ source }) => (source ? [source] : []));
    const { grades } = question;
    return {
      question,
      ndcg: ndcg(ranking, grades),
      recall: recall(ranking, grades),
      reciprocalRank: reciprocalRank(ranking, grades),
      ...judged(ranking, grades),
      complete,
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Keep the questions that every run measured, so that each is compared with itself. */
export function paired(runs: readonly Run[]): Measured[][] {
  const everywhere = (id: string) =>
    runs.every(({ measured }) => measured.some(({ question }) => question.id === id));
  return runs.map(({ measured }) => measured.filter(({ question }) => everywhere(question.id)));
}
