/** How good the settings are on the judged questions, and what other settings would change. */

import { useState } from "react";
import { useAction, useApp } from "../../context";
import type { Question } from "../../judgments";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { SettingsRows } from "../../parts/SettingsRows";
import { Button } from "../../parts/shapes";
import { Empty, Notice } from "../../parts/states";
import { address, go, usePlace } from "../../route";
import { type Settings, toParams } from "../../settings";
import { fromAddress, toAddress } from "../search/place";
import { Figures, PerQuestion } from "./Figures";
import { hasRelevant, measureAll, type Run } from "./measures";
import { Everybody, useJudgedQuestions } from "./Questions";

interface Done {
  /** A, and B if two settings were compared. */
  settings: Settings[];
  runs: Run[];
}

export function MeasureTab() {
  const text = useMessages("quality");
  const { params } = usePlace();
  const [all, setAll] = useState(false);
  const { questions, state } = useJudgedQuestions(all);
  const counted = questions.filter(({ grades }) => hasRelevant(grades));
  const { settings: a, other: b, missing } = fromAddress(params);
  return (
    <>
      <Everybody all={all} onChange={setAll} />
      <SettingsRows
        a={a}
        b={b}
        onChange={(settings, other) =>
          go(address("quality", toAddress({ settings, other, missing }), "measure"), { replace: true })
        }
      />
      {state ??
        (counted.length === 0 ? (
          <Empty title={text.nothingToMeasure}>
            <p>
              {text.nothingToMeasureHint} <a href={address("quality", {}, "results")}>{text.judgeResults}</a>
            </p>
          </Empty>
        ) : (
          <Measuring
            questions={counted}
            left={questions.length - counted.length}
            settings={b === null ? [a] : [a, b]}
          />
        ))}
    </>
  );
}

interface Props {
  questions: Question[];
  /** How many questions have no relevant document. */
  left: number;
  settings: Settings[];
}

function Measuring({ questions, left, settings }: Props) {
  const text = useMessages("quality");
  const parts = useMessages("parts");
  const { client } = useApp();
  const announce = useAnnounce();
  const { run, cancel, isRunning } = useAction(); // a search that fails is part of its run
  const [progress, setProgress] = useState(0);
  const [done, setDone] = useState<Done | null>(null);
  const total = questions.length * settings.length;
  const start = () =>
    run(async (signal) => {
      setProgress(0);
      const runs = await measureAll(client, questions, settings, setProgress, signal);
      setDone({ settings, runs });
      announce(text.measured);
    });
  return (
    <>
      <div className="row">
        {isRunning ? (
          <>
            <Button
              onClick={() => {
                cancel();
                announce(text.cancelled);
              }}
            >
              {parts.cancel}
            </Button>
            <label className="row grow">
              <progress value={progress} max={total} />
              <span className="small">{text.searchesOf(progress, total)}</span>
            </label>
          </>
        ) : (
          <>
            <Button kind="primary" onClick={start}>
              {done ? text.measureAgain : text.measure}
            </Button>
            <span className="small">
              {text.judgedQuestions(questions.length)}
              {left > 0 && text.withoutRelevant(left)}
            </span>
          </>
        )}
      </div>
      {done && (
        <>
          {written(done.settings) !== written(settings) && <Notice>{text.earlierFigures}</Notice>}
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
