/** Judgments as the files of a data set in BEIR's form, which `ragstack eval` and `ragstack tune` read. */
import type { Question } from "../../judgments";

export function queriesFile(known: readonly Question[]): string {
  return lines(
    known.map(({ id, text, answer }) => ({
      _id: id,
      text,
      metadata: answer?.reference ? { answer: answer.reference } : {},
    })),
  );
}

/** Judgments as tab-separated values: a tab or a line break within a name would break the file. */
export function qrelsFile(known: readonly Question[]): string {
  const rows = known.flatMap(({ id, grades }) =>
    [...grades].map(([document, grade]) => [id, document, grade].join("\t")),
  );
  return `${["query-id\tcorpus-id\tscore", ...rows].join("\n")}\n`;
}

/** The judged documents by name. Their texts stay where they are: the stack has them. */
export function corpusFile(known: readonly Question[], title: (uri: string) => string): string {
  const documents = new Set(known.flatMap(({ grades }) => [...grades.keys()]));
  return lines([...documents].sort().map((uri) => ({ _id: uri, title: title(uri), text: "", metadata: {} })));
}

function lines(entries: readonly object[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}
