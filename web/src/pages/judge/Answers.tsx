/** Judge the answer to a question; a bad one becomes a regression question. */

import { useCallback, useState } from "react";
import type { Source } from "../../api/types";
import { questionId } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { JudgeAnswer, Reference, told, type Verdict } from "../../parts/JudgeAnswer";
import { OriginalDialog } from "../../parts/Original";
import { Button } from "../../parts/shapes";
import { Empty, Notes, Notice } from "../../parts/states";
import { address, usePlace } from "../../route";
import { fromParams, type Settings, toParams } from "../../settings";
import { Answer } from "../ask/Answer";
import { isRunning, Progress } from "../ask/Progress";
import { Sources } from "../ask/Sources";
import { useAsking } from "../ask/useAsking";
import { KeysHelp, useKeys } from "./keys";
import { QuestionForm, useNext } from "./QuestionForm";
import { useJudgments } from "./useJudgments";

const KEYS = [
  ["g", "Good answer"],
  ["b", "Bad answer: keep the question as a regression question"],
  ["u", "Undo"],
  ["n", "Next question"],
  ["?", "These keys"],
] as const;

const ASKED = {
  name: "judge.answers",
  addressOf: (settings: Settings) => address("quality", toParams(settings), "answers"),
  isConversation: false,
};

export function AnswersTab() {
  const { params } = usePlace();
  const settings = fromParams(params);
  if (settings.question) return <Judging settings={settings} />;
  return (
    <>
      <QuestionForm tab="answers" settings={settings} />
      <Empty title="Which question?">
        <p>Ask a question, and judge its answer. Bad answers become regression questions.</p>
      </Empty>
    </>
  );
}

function Judging({ settings }: { settings: Settings }) {
  const { questions, judge, undo } = useJudgments();
  const announce = useAnnounce();
  const { asking, again } = useAsking(settings, ASKED);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [open, setOpen] = useState<Source | null>(null);
  const next = useNext("answers", settings);
  const id = questionId(settings.question, questions);
  const verdict = questions.find((question) => question.id === id)?.answer ?? null;

  const isDone = asking.status === "done";
  const decide = useCallback(
    (given: Verdict | null) => {
      if (!isDone) return;
      const change = { query_id: id, query: settings.question, document: null };
      judge({ ...change, grade: given?.grade ?? null, reference: given?.reference ?? null });
      announce(told(given));
    },
    [isDone, id, settings.question, judge, announce],
  );
  const takeBack = () => announce(undo() ? "Undone" : "Nothing to undo");
  const keys = useKeys({
    g: () => decide({ grade: 1, reference: verdict?.reference ?? null }),
    b: () => decide({ grade: 0, reference: verdict?.reference ?? null }),
    u: takeBack,
    n: () => next?.(),
    "?": () => setHelpOpen(true),
  });
  const sources = asking.response?.sources ?? asking.found?.sources ?? [];
  return (
    <>
      <QuestionForm tab="answers" settings={settings} onAgain={() => again(settings)}>
        <Button onClick={takeBack}>
          Undo <kbd>u</kbd>
        </Button>
        <KeysHelp keys={KEYS} {...keys} isOpen={isHelpOpen} setOpen={setHelpOpen} />
      </QuestionForm>
      <section className="turn" aria-label="Answer" aria-busy={isRunning(asking)}>
        <div className="stack">
          <Progress asking={asking} onRetry={() => again(settings)} />
          {asking.response && !asking.response.complete && (
            <Notice kind="warning">The search was incomplete, so sources may be missing.</Notice>
          )}
          {asking.response && !asking.response.answered && (
            <Notice kind="warning">The documents may not answer this.</Notice>
          )}
          <Notes notes={asking.response?.notes} />
          {asking.text !== "" && (
            <Answer
              asking={asking}
              lit={null}
              onLight={() => undefined}
              onOpen={(number) => setOpen(sources.find((source) => source.number === number) ?? null)}
            />
          )}
          {isDone && (
            <>
              <JudgeAnswer verdict={verdict} onJudge={decide} keys={["g", "b"]} />
              <Reference verdict={verdict} onJudge={decide} />
            </>
          )}
        </div>
        {sources.length > 0 && (
          <div>
            <h2 className="visually-hidden">Sources</h2>
            <Sources sources={sources} lit={[]} onLight={() => undefined} onOpen={setOpen} />
          </div>
        )}
      </section>
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </>
  );
}
