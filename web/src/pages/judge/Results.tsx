/** Grade the results of a search while its nDCG@10 moves. */

import { useEffect, useRef, useState } from "react";
import type { RetrievedResult } from "../../api/types";
import { useLoaded } from "../../context";
import { figure } from "../../format";
import { type Change, questionId } from "../../judgments";
import { type Messages, useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { GradeButton } from "../../parts/JudgeAnswer";
import { withoutSigns } from "../../parts/matches";
import { documentKey, documentName, place, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { usePlace } from "../../route";
import { fromParams, type Settings, toParams, toRetrieve } from "../../settings";
import { KeysHelp, useKeys } from "./keys";
import { DEPTH, type Grades, hasRelevant, measure, rankingOf } from "./measures";
import { QuestionForm, useNext } from "./QuestionForm";
import { useJudgments } from "./useJudgments";

const keysOf = ({ keysOf: text, grades }: Messages["quality"]) =>
  [
    [grades.map((_, grade) => grade).join(" "), text.grade(grades.join(", "))],
    ["j ↓", text.nextResult],
    ["k ↑", text.previousResult],
    ["u", text.undo],
    ["n", text.next],
    ["?", text.these],
  ] as const;

export function ResultsTab() {
  const text = useMessages("quality");
  const { params } = usePlace();
  const { questions } = useJudgments();
  const settings = fromParams(params);
  if (settings.question) return <Judging settings={settings} />;
  return (
    <>
      <QuestionForm tab="results" settings={settings} />
      <Empty title={questions.length > 0 ? text.whichQuestion : text.noneJudged}>
        <p>{questions.length > 0 ? text.continueHint : text.gradeHint}</p>
      </Empty>
    </>
  );
}

function Judging({ settings }: { settings: Settings }) {
  const text = useMessages("quality");
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
    if (count !== undefined) announce(text.resultCount(count));
  }, [announce, count, text]);

  const isHere = found.data !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each search
  useEffect(() => {
    const { activeElement } = document;
    // Keys grade from here: the box in which the question was written is done with.
    if (isHere && (activeElement === document.body || activeElement?.matches(".composer textarea")))
      (list.current?.querySelector("article") as HTMLElement | null)?.focus({ preventScroll: true });
  }, [isHere, key]);

  const moveTo = (place: number) => {
    const to = Math.max(0, Math.min(place, results.length - 1));
    setAt(to);
    const item = list.current?.children[to]?.firstElementChild as HTMLElement | null | undefined;
    item?.focus();
    item?.scrollIntoView({ block: "nearest" });
  };
  const told = (change: Change) => {
    const grade = change.grade === null ? null : `${change.grade}, ${text.grades[change.grade]}`;
    setSaid(text.graded(documentName(change.document), grade));
  };
  const grade = (place: number, given: number | null) => {
    const document = results[place]?.source;
    if (!document) return;
    const change = { query_id: id, query: settings.question, document, grade: given, reference: null };
    judge(change);
    told(change);
  };
  /** Grade by a key, and go on: who types ten grades means ten results. */
  const gradeAndMove = (given: number) => {
    grade(at, given);
    if (at < results.length - 1) moveTo(at + 1);
  };
  const takeBack = () => {
    const change = undo();
    if (change === null) announce(text.nothingToUndo);
    else {
      told(change);
      const place = results.findIndex((each) => each.source === change.document);
      if (place >= 0 && change.query_id === id) moveTo(place);
    }
  };
  const keys = useKeys({
    ...Object.fromEntries(text.grades.map((_, given) => [String(given), () => gradeAndMove(given)])),
    j: () => moveTo(at + 1),
    k: () => moveTo(at - 1),
    u: takeBack,
    n: () => next?.(),
    "?": () => setHelpOpen(true),
  });

  return (
    <>
      <QuestionForm tab="results" settings={settings} onAgain={found.reload}>
        <Button kind="quiet" onClick={takeBack}>
          {text.undo} <kbd>u</kbd>
        </Button>
        <KeysHelp keys={keysOf(text)} {...keys} isOpen={isHelpOpen} setOpen={setHelpOpen} />
      </QuestionForm>
      {found.error ? (
        <ErrorBox error={found.error} onRetry={found.reload} />
      ) : found.data === null ? (
        <Loading what={text.theResults} />
      ) : results.length === 0 ? (
        <Empty title={text.nothingFound}>
          <p>{text.nothingFoundHint}</p>
        </Empty>
      ) : (
        <div className="judging">
          <Score key={key} ranking={ranking} grades={grades} said={said} onSaid={setSaid} />
          <div className="stack">
            {!found.data.complete && <Notice kind="warning">{text.incomplete}</Notice>}
            <ol className="judged" ref={list} aria-label={text.results}>
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
  const text = useMessages("quality");
  const where = place(result);
  const name = documentName(result.source);
  return (
    <article
      className={`card result ${isCurrent ? "current" : ""}`}
      tabIndex={isCurrent ? 0 : -1}
      aria-label={text.resultIs(rank, name, (grade === null ? null : text.grades[grade]) ?? text.notJudged)}
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
        {withoutSigns(plain(result.content)).replace(/\n{2,}/g, "\n")}
      </blockquote>
      {result.source ? (
        <GradeButtons grade={grade} onGrade={onGrade} />
      ) : (
        <p className="small">{text.noDocument}</p>
      )}
    </article>
  );
}

function GradeButtons({ grade, onGrade }: Pick<ResultProps, "grade" | "onGrade">) {
  const text = useMessages("quality");
  return (
    <fieldset className="plain row">
      <legend className="visually-hidden">{text.grade}</legend>
      {text.grades.map((label, given) => (
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
  const text = useMessages("quality");
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
    const quality = hasRelevant(grades) ? data && text.saidNdcg(figure(data.ndcg)) : text.saidNone;
    announce([said, quality].filter(Boolean).join("; "));
    onSaid("");
  }, [said, onSaid, data, error, grades, announce, text]);
  const value = hasRelevant(grades) && !error ? measures?.ndcg : undefined;
  const judged = measures?.judged ?? 0;
  const open = (measures?.shown ?? 0) - judged;
  const missed = [...grades].filter(([uri, grade]) => grade > 0 && !ranking.slice(0, DEPTH).includes(uri));
  return (
    <section className="card score" aria-label={text.ofQuestion}>
      <p className="figure">
        <span className="small">{text.ndcg}</span>{" "}
        <strong>{value === undefined ? "–" : figure(value)}</strong>
      </p>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect className="track" width="100" height="4" rx="1" />
        <rect className="value" width={(value ?? 0) * 100} height="4" rx="1" />
      </svg>
      {error && <ErrorBox error={error} onRetry={reload} />}
      <p className="small">
        {measures && text.judgedOf(judged, measures.shown)}
        {open > 0 && judged > 0 && text.othersCount(open)}
        {judged > 0 && !hasRelevant(grades) && text.noRelevant}
      </p>
      <p className={`small ${judged > 0 ? "meaning" : ""}`}>{text.ndcgMeaning}</p>
      {missed.length > 0 && (
        <details className="small">
          <summary>{text.missed(missed.length)}</summary>
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
