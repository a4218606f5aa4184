/** Judge the answer to a question; a bad one becomes a regression question. */

import { useCallback, useEffect, useRef, useState } from "react";
import type { Source } from "../../api/types";
import { questionId } from "../../judgments";
import { type Messages, useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { JudgeAnswer, Reference, told, type Verdict } from "../../parts/JudgeAnswer";
import { OriginalDialog } from "../../parts/Original";
import { Button } from "../../parts/shapes";
import { Empty, Notes, Notice } from "../../parts/states";
import { address, usePlace } from "../../route";
import { fromParams, type Settings, toParams } from "../../settings";
import { AnswerText } from "../ask/AnswerText";
import { isRunning, Progress } from "../ask/Progress";
import { Sources } from "../ask/Sources";
import { useAsking } from "../ask/useAsking";
import { KeysHelp, useKeys } from "./keys";
import { QuestionForm, useNext } from "./QuestionForm";
import { useJudgments } from "./useJudgments";

const keysOf = ({ keysOf: text }: Messages["quality"]) =>
  [
    ["g", text.good],
    ["b", text.bad],
    ["u", text.undo],
    ["n", text.next],
    ["?", text.these],
  ] as const;

const ASKED = {
  name: "judge.answers",
  addressOf: (settings: Settings) => address("quality", toParams(settings), "answers"),
  isConversation: false,
};

export function AnswersTab() {
  const text = useMessages("quality");
  const { params } = usePlace();
  const settings = fromParams(params);
  if (settings.question) return <Judging settings={settings} />;
  return (
    <>
      <QuestionForm tab="answers" settings={settings} />
      <Empty title={text.whichQuestion}>
        <p>{text.answerHint}</p>
      </Empty>
    </>
  );
}

function Judging({ settings }: { settings: Settings }) {
  const text = useMessages("quality");
  const { questions, judge, undo } = useJudgments();
  const announce = useAnnounce();
  const { asking, again } = useAsking(settings, ASKED);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [open, setOpen] = useState<Source | null>(null);
  const next = useNext("answers", settings);
  const id = questionId(settings.question, questions);
  const verdict = questions.find((question) => question.id === id)?.answer ?? null;

  const section = useRef<HTMLElement>(null);
  // The form in which the question was written is another one now.
  useEffect(() => {
    if (document.activeElement === document.body) section.current?.focus({ preventScroll: true });
  }, []);

  const isDone = asking.status === "done";
  const decide = useCallback(
    (given: Verdict | null) => {
      if (!isDone) return;
      const change = { query_id: id, query: settings.question, document: null };
      const { grade = null, reference = null } = given ?? {};
      judge({ ...change, grade, reference, isKept: given !== null && grade === null });
      announce(told(given));
    },
    [isDone, id, settings.question, judge, announce],
  );
  const takeBack = () => announce(undo() ? text.undone : text.nothingToUndo);
  const keys = useKeys({
    g: () => decide({ grade: 1, reference: verdict?.reference ?? null }),
    b: () => decide({ grade: 0, reference: verdict?.reference ?? null }),
    u: takeBack,
    n: () => next?.(),
    "?": () => setHelpOpen(true),
  });
  // Not before the answer, which is above them on a narrow screen and would move them.
  const sources = asking.response?.sources ?? [];
  return (
    <>
      <QuestionForm tab="answers" settings={settings} onAgain={() => again(settings)}>
        <Button kind="quiet" onClick={takeBack}>
          {text.undo} <kbd>u</kbd>
        </Button>
        <KeysHelp keys={keysOf(text)} {...keys} isOpen={isHelpOpen} setOpen={setHelpOpen} />
      </QuestionForm>
      <section
        ref={section}
        tabIndex={-1}
        className="turn"
        aria-label={text.answer}
        aria-busy={isRunning(asking)}
      >
        <div className="stack">
          <Progress asking={asking} onRetry={() => again(settings)} />
          {asking.response && !asking.response.complete && (
            <Notice kind="warning">{text.sourcesIncomplete}</Notice>
          )}
          {asking.response && !asking.response.answered && (
            <Notice kind="warning">{text.notAnswerable}</Notice>
          )}
          <Notes notes={asking.response?.notes} />
          {asking.text !== "" && <h2 className="visually-hidden">{text.answer}</h2>}
          <AnswerText asking={asking} onOpen={setOpen} />
          {isDone && (
            <>
              <JudgeAnswer verdict={verdict} onJudge={decide} keys={["g", "b"]} />
              <Reference verdict={verdict} onJudge={decide} />
            </>
          )}
        </div>
        {sources.length > 0 && (
          <div>
            <h2 className="visually-hidden">{text.sources}</h2>
            <Sources sources={sources} lit={[]} onLight={() => undefined} onOpen={setOpen} />
          </div>
        )}
      </section>
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </>
  );
}
