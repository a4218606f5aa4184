/** The judged questions, and their files in BEIR's form. */

import { useState } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import type { Question } from "../../judgments";
import { questions as grouped, isRegression, load } from "../../judgments";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { CopyButton } from "../../parts/CopyButton";
import { Checkbox } from "../../parts/fields";
import { documentName, plain } from "../../parts/names";
import { Badge, Button, Card, Hidden, Scrolling } from "../../parts/shapes";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address } from "../../route";
import { useJudgments } from "./useJudgments";

type Page = components["schemas"]["JudgedFiles"];

const COMMANDS = [
  "ragstack judgments export judged",
  "ragstack eval search judged",
  "ragstack eval search judged/questions.csv --setup engine=stack",
] as const;

/** Own judgments, or those of everybody for people who may see them. */
export function useJudgedQuestions(all: boolean): { questions: Question[]; state: React.ReactNode } {
  const text = useMessages("quality");
  const own = useJudgments();
  const everybody = useLoaded(`judged ${all}`, async (client, signal) =>
    all ? load(client, true, signal) : [],
  );
  if (!all) return { questions: own.questions, state: null };
  if (everybody.error)
    return { questions: [], state: <ErrorBox error={everybody.error} onRetry={everybody.reload} /> };
  if (everybody.data === null) return { questions: [], state: <Loading what={text.everybodys} /> };
  return { questions: grouped(everybody.data), state: null };
}

export function Everybody({ all, onChange }: { all: boolean; onChange: (all: boolean) => void }) {
  const { me } = useApp();
  const text = useMessages("quality");
  if (!me.rights.includes("operate")) return null;
  return (
    <Checkbox checked={all} onChange={onChange}>
      {text.everybody}
    </Checkbox>
  );
}

export function QuestionsTab() {
  const text = useMessages("quality");
  const [all, setAll] = useState(false);
  const { questions, state } = useJudgedQuestions(all);
  return (
    <>
      <Everybody all={all} onChange={setAll} />
      {state ??
        (questions.length === 0 ? (
          <Empty title={text.noneJudged}>
            <p>{text.keptHere}</p>
            <p className="row">
              <a href={address("quality", {}, "results")}>{text.judgeResults}</a>
              <a href={address("quality", {}, "answers")}>{text.judgeAnswers}</a>
            </p>
          </Empty>
        ) : (
          <>
            <QuestionTable questions={questions} canRemove={!all} />
            <Export key={String(all)} all={all} />
          </>
        ))}
    </>
  );
}

function QuestionTable({ questions, canRemove }: { questions: Question[]; canRemove: boolean }) {
  const text = useMessages("quality");
  const { judge } = useJudgments();
  const announce = useAnnounce();
  const remove = ({ id, text: query, grades, answer }: Question) => {
    const change = { query_id: id, query, grade: null, reference: null };
    for (const document of grades.keys()) judge({ ...change, document });
    if (answer) judge({ ...change, document: null });
    announce(text.removed(plain(query)));
  };
  return (
    <Scrolling className="scroll card" label={text.judged}>
      <Table
        rows={questions}
        keyOf={({ id }) => id}
        columns={[
          [
            text.columns.question,
            (each) => <a href={address("quality", { q: each.text }, "results")}>{plain(each.text)}</a>,
          ],
          [text.columns.judged, ({ grades }) => grades.size, "number"],
          [
            text.columns.relevant,
            ({ grades }) => [...grades.values()].filter((grade) => grade > 0).length,
            "number",
          ],
          [text.columns.answer, (question) => <JudgedAnswer {...question} />],
          canRemove && [
            <Hidden key="remove">{text.columns.remove}</Hidden>,
            (question) => (
              <Button
                kind="quiet"
                aria-label={text.removeOf(plain(question.text))}
                onClick={() => remove(question)}
              >
                {text.columns.remove}
              </Button>
            ),
          ],
        ]}
      />
      {canRemove && <p className="small">{text.restoreHint}</p>}
    </Scrolling>
  );
}

function JudgedAnswer(question: Question) {
  const text = useMessages("quality");
  const { text: query, answer } = question;
  return (
    <>
      <a href={address("quality", { q: query }, "answers")}>
        {answer === null ? text.judgeAnswer : text.askAgain}
      </a>{" "}
      {answer?.grade === 1 && <Badge kind="good">{text.good}</Badge>}
      {isRegression(question) && <Badge kind={answer?.grade === 0 ? "bad" : ""}>{text.regression}</Badge>}
      {answer?.reference && (
        <div className="small" dir="auto">
          {text.right(plain(answer.reference))}
        </div>
      )}
    </>
  );
}

interface Files {
  texts: Record<string, string>;
  leftOut: string[];
  documentsLeft: number;
  isComplete: boolean;
}

/** The interface writes the files, in pages; what is here is what it has written so far. */
function Export({ all }: { all: boolean }) {
  const { client } = useApp();
  const text = useMessages("quality");
  const { run, isRunning, error } = useAction();
  const [files, setFiles] = useState<Files | null>(null);
  const prepare = () =>
    run(async (signal) => {
      let next_token: string | null = null;
      const texts: Files["texts"] = {};
      const leftOut: string[] = [];
      do {
        const page: Page = await client.get("/api/judgments/export", { all, next_token }, signal);
        for (const [path, text] of Object.entries(page.files)) texts[path] = (texts[path] ?? "") + text;
        leftOut.push(...page.left_out);
        next_token = page.next_token;
        setFiles({ texts, leftOut, documentsLeft: page.documents_left, isComplete: next_token === null });
      } while (next_token !== null);
    });
  return (
    <Card title={text.exporting}>
      <p>{text.exportHint}</p>
      <div className="commands">
        {COMMANDS.map((command) => (
          <div className="row spread" key={command}>
            <code>{command}</code>
            <CopyButton label={text.copy} text={() => command} />
          </div>
        ))}
      </div>
      {error ? (
        <ErrorBox error={error} onRetry={prepare} />
      ) : isRunning ? (
        <p role="status">
          <span className="spinner" aria-hidden="true" /> {text.reading}
          {files ? text.toGo(files.documentsLeft) : " …"}
        </p>
      ) : files?.isComplete ? (
        <div className="row">
          {Object.entries(files.texts).map(([path, content]) => (
            <Button key={path} onClick={() => download(path.split("/").pop() ?? path, content)}>
              {text.save(path)}
            </Button>
          ))}
        </div>
      ) : (
        <p>
          <Button onClick={prepare}>{text.prepare}</Button>
        </p>
      )}
      {files?.isComplete && files.leftOut.length > 0 && (
        <Notice kind="warning">{text.leftOut(files.leftOut.map(documentName).join(", "))}</Notice>
      )}
    </Card>
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
