/** Grade the results of a search while its nDCG@10 moves. */

import { useEffect, useRef, useState } from "react";
import type { RetrievedResult } from "../../api/types";
import { useLoaded } from "../../context";
import { figure } from "../../format";
import { type Change, GRADES, questionId } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { GradeButton } from "../../parts/JudgeAnswer";
import { documentKey, documentName, place } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { usePlace } from "../../route";
import { fromParams, type Settings, toParams, toRetrieve } from "../../settings";
import { KeysHelp, useKeys } from "./keys";
import { DEPTH, type Grades, hasRelevant, measure, rankingOf } from "./measures";
import { QuestionForm, useNext } from "./QuestionForm";
import { useJudgments } from "./useJudgments";

const KEYS = [
  ["0 1 2 3", `Grade the result: ${GRADES.join(", ").toLowerCase()}`],
  ["j ↓", "Next result"],
  ["k ↑", "Previous result"],
  ["u", "Undo"],
  ["n", "Next question"],
  ["?", "These keys"],
] as const;

export function ResultsTab() {
  const { params } = usePlace();
  const { questions } = useJudgments();
  const settings = fromParams(params);
  if (settings.question) return <Judging settings={settings} />;
  return (
    <>
      <QuestionForm tab="results" settings={settings} />
      <Empty title={questions.length > 0 ? "Which question?" : "No question was judged yet"}>
        <p>
          {questions.length > 0
            ? "Write a question, or continue with the next one that you saved."
            : "Write a question, and grade its results from 0 (irrelevant) to 3 (answers it)."}
        </p>
      </Empty>
    </>
  );
}

function Judging({ settings }: { settings: Settings }) {
  const { questions, judge, undo } = useJudgments();
  const announce = useAnnounce();
  const list = useRef<HTMLOListElement>(null);
  const [at, setAt] = useState(0);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const asked = { ...settings, topK: settings.topK ?? DEPTH };
  const key = toParams(asked).toString();
  const found = useLoaded(`judge ${key}`, (client, signal) =>
    client.post("/api/retrieve", toRetrieve(asked), signal),
  );
  const id = questionId(settings.question, questions);
  const grades = questions.find((question) => question.id === id)?.grades ?? new Map<string, number>();
  const results = found.data?.results ?? [];
  const ranking = rankingOf(results);
  const [said, setSaid] = useState("");
  const next = useNext("results", settings);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another search begins at its first result
  useEffect(() => setAt(0), [key]);
  const count = found.data?.results.length;
  useEffect(() => {
    if (count !== undefined) announce(count === 1 ? "1 result" : `${count} results`);
  }, [announce, count]);

  const moveTo = (place: number) => {
    const to = Math.max(0, Math.min(place, results.length - 1));
    setAt(to);
    const item = list.current?.children[to]?.firstElementChild as HTMLElement | null | undefined;
    item?.focus();
    item?.scrollIntoView({ block: "nearest" });
  };
  const told = (change: Change) => {
    const name = change.grade === null ? "Not judged" : `${change.grade}, ${GRADES[change.grade]}`;
    setSaid(`${documentName(change.document)}: ${name}`);
  };
  const grade = (place: number, given: number | null) => {
    const document = results[place]?.source;
    if (!document) return;
    const change = { query_id: id, query: settings.question, document, grade: given, reference: null };
    judge(change);
    told(change);
  };
  const takeBack = () => {
    const change = undo();
    if (change === null) announce("Nothing to undo");
    else told(change);
  };
  const keys = useKeys({
    ...Object.fromEntries(GRADES.map((_, given) => [String(given), () => grade(at, given)])),
    j: () => moveTo(at + 1),
    k: () => moveTo(at - 1),
    u: takeBack,
    n: () => next?.(),
    "?": () => setHelpOpen(true),
  });

  return (
    <>
      <QuestionForm tab="results" settings={settings} onAgain={found.reload}>
        <Button onClick={takeBack}>
          Undo <kbd>u</kbd>
        </Button>
        <KeysHelp keys={KEYS} {...keys} isOpen={isHelpOpen} setOpen={setHelpOpen} />
      </QuestionForm>
      {found.error ? (
        <ErrorBox error={found.error} onRetry={found.reload} />
      ) : found.data === null ? (
        <Loading what="the results" />
      ) : results.length === 0 ? (
        <Empty title="Nothing found">
          <p>No document matches with these settings. Change the question or the settings.</p>
        </Empty>
      ) : (
        <div className="judging">
          <Score key={key} ranking={ranking} grades={grades} said={said} onSaid={setSaid} />
          <div className="stack">
            {!found.data.complete && (
              <Notice kind="warning">
                The search is incomplete: a part of it failed or timed out, so results may be missing.
              </Notice>
            )}
            <ol className="judged" ref={list} aria-label="Results">
              {results.map((result, index) => (
                <li key={`${result.source} ${index}`}>
                  <Result
                    result={result}
                    rank={index + 1}
                    grade={grades.get(result.source ?? "") ?? null}
                    isCurrent={index === at}
                    onFocus={() => setAt(index)}
                    onMove={(by) => moveTo(index + by)}
                    onGrade={(given) => grade(index, given)}
                  />
                </li>
              ))}
            </ol>
          </div>
        </div>
      )}
    </>
  );
}

interface ResultProps {
  result: RetrievedResult;
  rank: number;
  grade: number | null;
  isCurrent: boolean;
  onFocus: () => void;
  onMove: (by: number) => void;
  onGrade: (grade: number | null) => void;
}

function Result({ result, rank, grade, isCurrent, onFocus, onMove, onGrade }: ResultProps) {
  const where = place(result);
  const name = documentName(result.source);
  return (
    <article
      className={`card result ${isCurrent ? "current" : ""}`}
      tabIndex={isCurrent ? 0 : -1}
      aria-label={`Result ${rank}: ${name}, ${grade === null ? "not judged" : GRADES[grade]}`}
      aria-current={isCurrent ? "true" : undefined}
      onFocus={onFocus}
      onKeyDown={(event) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (by === undefined || event.target !== event.currentTarget) return;
        event.preventDefault();
        onMove(by);
      }}
    >
      <h2 dir="auto">
        <span className="rank">{rank}</span> {name}
      </h2>
      <p className="small" dir="auto">
        {[result.source && documentKey(result.source), where].filter(Boolean).join(" · ")}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard */}
      <blockquote dir="auto" tabIndex={0}>
        {result.content.replace(/\n{2,}/g, "\n")}
      </blockquote>
      {result.source ? (
        <GradeButtons grade={grade} onGrade={onGrade} />
      ) : (
        <p className="small">This passage names no document, so it cannot be judged.</p>
      )}
    </article>
  );
}

function GradeButtons({ grade, onGrade }: Pick<ResultProps, "grade" | "onGrade">) {
  return (
    <fieldset className="plain row">
      <legend className="visually-hidden">Grade</legend>
      {GRADES.map((label, given) => (
        <GradeButton
          key={label}
          isGood={given > 0}
          isChosen={given === grade}
          onChange={(isChosen) => onGrade(isChosen ? given : null)}
        >
          <kbd>{given}</kbd> {label}
        </GradeButton>
      ))}
    </fieldset>
  );
}

interface ScoreProps {
  ranking: readonly string[];
  grades: Grades;
  /** What was judged last, to be announced with what it changes; empty if it has been. */
  said: string;
  onSaid: (said: "") => void;
}

function Score({ ranking, grades, said, onSaid }: ScoreProps) {
  const announce = useAnnounce();
  const {
    data,
    shown: measures,
    error,
    reload,
  } = useLoaded(JSON.stringify([ranking, [...grades]]), (client, signal) =>
    measure(client, ranking, grades, signal),
  );
  useEffect(() => {
    if (!said || (!data && !error)) return;
    const quality = hasRelevant(grades) ? data && `nDCG ${figure(data.ndcg)}` : "no relevant result yet";
    announce([said, quality].filter(Boolean).join("; "));
    onSaid("");
  }, [said, onSaid, data, error, grades, announce]);
  const value = hasRelevant(grades) && !error ? measures?.ndcg : undefined;
  const judged = measures?.judged ?? 0;
  const open = (measures?.shown ?? 0) - judged;
  const missed = [...grades].filter(([uri, grade]) => grade > 0 && !ranking.slice(0, DEPTH).includes(uri));
  return (
    <section className="card score" aria-label="Quality of this question">
      <p className="figure">
        <span className="small">nDCG@10</span> <strong>{value === undefined ? "–" : figure(value)}</strong>
      </p>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect className="track" width="100" height="4" rx="1" />
        <rect className="value" width={(value ?? 0) * 100} height="4" rx="1" />
      </svg>
      {error && <ErrorBox error={error} onRetry={reload} />}
      <p className="small">
        {measures && `${judged} of ${measures.shown} judged`}
        {open > 0 && judged > 0 && `; the other ${open === 1 ? "one counts" : `${open} count`} as irrelevant`}
        {judged > 0 && !hasRelevant(grades) && ". No relevant document yet"}
      </p>
      {missed.length > 0 && (
        <details className="small">
          <summary>
            {missed.length} relevant {missed.length === 1 ? "document is" : "documents are"} not here
          </summary>
          <ul>
            {missed.map(([uri, grade]) => (
              <li key={uri} dir="auto">
                {documentName(uri)} ({grade})
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
