/** How good the settings are on the judged questions, and what other settings would change. */
import { useEffect, useRef, useState } from "react";
import { useApp } from "../../context";
import type { Question } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { Empty, Notice } from "../../parts/states";
import { TestTarget } from "../../parts/TestTarget";
import { address, go, usePlace } from "../../route";
import { type Settings, toParams } from "../../settings";
import { fromAddress, toAddress } from "../search/place";
import { Figures, PerQuestion } from "./Figures";
import { hasRelevant } from "./measures";
import { measure, type Run } from "./measuring";
import { Everybody, useJudgedQuestions } from "./Questions";

interface Done {
  /** A, and B if two settings were compared. */
  settings: Settings[];
  runs: Run[];
}

export function MeasureTab() {
  const { params } = usePlace();
  const [all, setAll] = useState(false);
  const { questions, state } = useJudgedQuestions(all);
  const counted = questions.filter(({ grades }) => hasRelevant(grades));
  const { settings: a, other: b, missing } = fromAddress(params);
  const show = (settings: Settings, other: Settings | null) =>
    go(address("judge", toAddress({ settings, other, missing }), "measure"), { replace: true });
  return (
    <>
      <Everybody all={all} onChange={setAll} />
      <div className={b ? "compared" : ""}>
        <TestTarget settings={a} onChange={(next) => show(next, b)} legend={b ? "Settings A" : "Settings"} />
        {b && <TestTarget settings={b} onChange={(next) => show(a, next)} legend="Settings B" />}
      </div>
      <label className="row">
        <input type="checkbox" checked={b !== null} onChange={() => show(a, b === null ? a : null)} />
        What would other settings change?
      </label>
      {state ??
        (counted.length === 0 ? (
          <Empty title="Nothing to measure yet">
            <p>
              A question counts once a relevant document is known.{" "}
              <a href={address("judge", {}, "results")}>Judge results</a>
            </p>
          </Empty>
        ) : (
          <Measuring questions={counted} left={questions.length - counted.length} a={a} b={b} />
        ))}
    </>
  );
}

interface Props {
  questions: Question[];
  /** How many questions have no relevant document. */
  left: number;
  a: Settings;
  b: Settings | null;
}

function Measuring({ questions, left, a, b }: Props) {
  const { client } = useApp();
  const announce = useAnnounce();
  const running = useRef<AbortController | null>(null);
  const [progress, setProgress] = useState<number | null>(null);
  const [done, setDone] = useState<Done | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const settings = b === null ? [a] : [a, b];
  const total = questions.length * settings.length;

  const start = async () => {
    const abort = new AbortController();
    running.current = abort;
    setProgress(0);
    try {
      const runs = await measure(client, questions, settings, setProgress, abort.signal);
      setDone({ settings, runs });
      announce("Measured");
    } catch {
      announce("Cancelled"); // a search that fails is part of its run
    } finally {
      if (running.current === abort) setProgress(null);
    }
  };
  const isOld = done !== null && written(done.settings) !== written(settings);
  return (
    <>
      <div className="row">
        {progress === null ? (
          <button type="button" className="primary" onClick={() => void start()}>
            {done ? "Measure again" : "Measure"}
          </button>
        ) : (
          <button type="button" onClick={() => running.current?.abort()}>
            Cancel
          </button>
        )}
        {progress === null ? (
          <span className="small">
            {questions.length === 1 ? "1 judged question" : `${questions.length} judged questions`}
            {left > 0 && `; ${left} without a relevant document ${left === 1 ? "is" : "are"} left out`}
          </span>
        ) : (
          <label className="row grow">
            <progress value={progress} max={total} />
            <span className="small">
              {progress} of {total} searches
            </span>
          </label>
        )}
      </div>
      {done && (
        <>
          {isOld && <Notice>These figures are those of earlier settings. Measure again.</Notice>}
          <Figures runs={done.runs} />
          <PerQuestion runs={done.runs} settings={done.settings} />
        </>
      )}
    </>
  );
}

/** Settings as text, to compare them; the question is not one of them. */
function written(settings: readonly Settings[]): string {
  return settings.map((each) => toParams({ ...each, question: "" }).toString()).join(" | ");
}
