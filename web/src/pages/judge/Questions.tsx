/** The judged questions, and their files in BEIR's form. */

import { useState } from "react";
import { useApp, useLoaded } from "../../context";
import type { Judgment, Question } from "../../judgments";
import { questions as grouped, load } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { CopyButton } from "../../parts/CopyButton";
import { documentName } from "../../parts/names";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { address } from "../../route";
import { corpusFile, qrelsFile, queriesFile } from "./beir";
import { useJudgments } from "./useJudgments";

const COMMANDS = [
  "ragstack judgments export FOLDER",
  "ragstack eval search FOLDER",
  "ragstack tune FOLDER",
] as const;

/** Own judgments, or those of everybody for people who may see them. */
export function useJudgedQuestions(all: boolean): { questions: Question[]; state: React.ReactNode } {
  const own = useJudgments();
  const everybody = useLoaded<Judgment[]>(`judged ${all}`, async (client, signal) =>
    all ? load(client, true, signal) : [],
  );
  if (!all) return { questions: own.questions, state: null };
  if (everybody.error)
    return { questions: [], state: <ErrorBox error={everybody.error} onRetry={everybody.reload} /> };
  if (everybody.data === null) return { questions: [], state: <Loading what="everybody's judgments" /> };
  return { questions: grouped(everybody.data), state: null };
}

export function Everybody({ all, onChange }: { all: boolean; onChange: (all: boolean) => void }) {
  const { me } = useApp();
  if (!me.rights.includes("operate")) return null;
  return (
    <label className="row">
      <input type="checkbox" checked={all} onChange={(event) => onChange(event.target.checked)} />
      Everybody's judgments; where people disagree, the latest counts
    </label>
  );
}

export function QuestionsTab() {
  const [all, setAll] = useState(false);
  const { questions, state } = useJudgedQuestions(all);
  return (
    <>
      <Everybody all={all} onChange={setAll} />
      {state ??
        (questions.length === 0 ? (
          <Empty title="No question was judged yet">
            <p>
              Judge <a href={address("judge", {}, "results")}>results</a> or{" "}
              <a href={address("judge", {}, "answers")}>answers</a>; the questions are kept here.
            </p>
          </Empty>
        ) : (
          <>
            <QuestionTable questions={questions} canRemove={!all} />
            <Export questions={questions} />
          </>
        ))}
    </>
  );
}

function QuestionTable({ questions, canRemove }: { questions: Question[]; canRemove: boolean }) {
  const { judge } = useJudgments();
  const announce = useAnnounce();
  const remove = ({ id, text, grades, answer }: Question) => {
    const change = { query_id: id, query: text, grade: null, reference: null };
    for (const document of grades.keys()) judge({ ...change, document });
    if (answer) judge({ ...change, document: null });
    announce(`Removed: ${text}`);
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="scroll card" aria-label="Judged questions" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Question</th>
            <th scope="col" className="number">
              Judged
            </th>
            <th scope="col" className="number">
              Relevant
            </th>
            <th scope="col">Answer</th>
            {canRemove && (
              <th scope="col">
                <span className="visually-hidden">Remove</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {questions.map((question) => {
            const { id, text, grades, answer } = question;
            return (
              <tr key={id}>
                <th scope="row" dir="auto">
                  <a href={address("judge", { q: text }, "results")}>{text}</a>
                </th>
                <td className="number">{grades.size}</td>
                <td className="number">{[...grades.values()].filter((grade) => grade > 0).length}</td>
                <td>
                  <a href={address("judge", { q: text }, "answers")}>
                    {answer === null ? "Judge the answer" : "Ask again"}
                  </a>{" "}
                  {answer?.grade === 1 && <span className="badge good">good</span>}
                  {answer?.grade === 0 && <span className="badge bad">regression question</span>}
                  {answer?.reference && (
                    <div className="small" dir="auto">
                      Right: {answer.reference}
                    </div>
                  )}
                </td>
                {canRemove && (
                  <td>
                    <button
                      type="button"
                      className="quiet"
                      aria-label={`Remove the judgments of: ${text}`}
                      onClick={() => remove(question)}
                    >
                      Remove
                    </button>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      {canRemove && (
        <p className="small">
          A removed question comes back with “Undo” on the pages that judge, until you leave.
        </p>
      )}
    </section>
  );
}

function Export({ questions }: { questions: Question[] }) {
  const file = (name: string, path: string, text: () => string) => (
    <button type="button" onClick={() => download(name, text())}>
      {path}
    </button>
  );
  return (
    <section className="card stack" aria-labelledby="export-title">
      <h2 id="export-title">Export</h2>
      <p>
        A data set in BEIR's form. The corpus names the judged documents, and their texts stay in the stack;
        the command line writes them too.
      </p>
      <div className="row">
        {file("queries.jsonl", "queries.jsonl", () => queriesFile(questions))}
        {file("test.tsv", "qrels/test.tsv", () => qrelsFile(questions))}
        {file("corpus.jsonl", "corpus.jsonl", () => corpusFile(questions, documentName))}
      </div>
      <div className="commands">
        {COMMANDS.map((command) => (
          <div className="row spread" key={command}>
            <code>{command}</code>
            <CopyButton label="Copy" text={() => command} />
          </div>
        ))}
      </div>
    </section>
  );
}

/** Let the browser save a text as a file. */
function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
