/** The judged questions, and their files in BEIR's form. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { useApp, useLoaded } from "../../context";
import type { Question } from "../../judgments";
import { questions as grouped, load } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { Card } from "../../parts/Card";
import { CopyButton } from "../../parts/CopyButton";
import { documentName, plain } from "../../parts/names";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { address } from "../../route";
import { type Corpus, corpusFile, qrelsFile, queriesFile, questionsFile, readCorpus } from "./beir";
import { useJudgments } from "./useJudgments";

const COMMANDS = [
  "ragstack judgments export judged",
  "ragstack eval search judged",
  "ragstack eval search judged/questions.csv --setup engine=stack",
] as const;

/** Own judgments, or those of everybody for people who may see them. */
export function useJudgedQuestions(all: boolean): { questions: Question[]; state: React.ReactNode } {
  const own = useJudgments();
  const everybody = useLoaded(`judged ${all}`, async (client, signal) =>
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
    announce(`Removed: ${plain(text)}`);
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
                  <a href={address("judge", { q: text }, "results")}>{plain(text)}</a>
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
                      Right: {plain(answer.reference)}
                    </div>
                  )}
                </td>
                {canRemove && (
                  <td>
                    <button
                      type="button"
                      className="quiet"
                      aria-label={`Remove the judgments of: ${plain(text)}`}
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
          To restore a removed question, press Undo under Results or Answers before you leave this page.
        </p>
      )}
    </section>
  );
}

type Preparing = { done: number; total: number } | Corpus | ApiError | null;

/** The files are made here, of what the interface gives: first the passages of the judged documents are read. */
function Export({ questions }: { questions: Question[] }) {
  const { client } = useApp();
  const [state, setState] = useState<Preparing>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const prepare = async () => {
    const abort = new AbortController();
    running.current = abort;
    setState({ done: 0, total: 0 });
    try {
      const progress = (done: number, total: number) => setState({ done, total });
      setState(await readCorpus(client, questions, progress, abort.signal));
    } catch (error) {
      if (abort.signal.aborted) return;
      setState(ApiError.of(error));
    }
  };
  return (
    <Card title="Export">
      <p>
        A data set in BEIR's form, with the passages of the judged documents. The command line writes the same
        files, and measures them:
      </p>
      <div className="commands">
        {COMMANDS.map((command) => (
          <div className="row spread" key={command}>
            <code>{command}</code>
            <CopyButton label="Copy" text={() => command} />
          </div>
        ))}
      </div>
      {state instanceof Map ? (
        <Files questions={questions} corpus={state} />
      ) : state instanceof ApiError ? (
        <ErrorBox error={state} onRetry={() => void prepare()} />
      ) : state !== null && "done" in state ? (
        <p role="status">
          <span className="spinner" aria-hidden="true" /> Reading the judged documents: {state.done} of{" "}
          {state.total || "…"}
        </p>
      ) : (
        <p>
          <button type="button" onClick={() => void prepare()}>
            Prepare the files
          </button>
        </p>
      )}
    </Card>
  );
}

function Files({ questions, corpus }: { questions: Question[]; corpus: Corpus }) {
  const missing = [...corpus]
    .filter(([, document]) => document === null)
    .map(([source]) => documentName(source));
  const files: [path: string, text: () => string][] = [
    ["queries.jsonl", () => queriesFile(questions)],
    ["corpus.jsonl", () => corpusFile(corpus)],
    ["qrels/test.tsv", () => qrelsFile(questions, corpus)],
    ["questions.csv", () => questionsFile(questions)],
  ];
  return (
    <>
      <div className="row">
        {files.map(([path, text]) => (
          <button key={path} type="button" onClick={() => download(path.split("/").pop() ?? path, text())}>
            Save {path}
          </button>
        ))}
      </div>
      {missing.length > 0 && (
        <Notice kind="warning">
          Left out, because searches find no passage of them: {missing.join(", ")}
        </Notice>
      )}
    </>
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
