/** The question to judge; several lines are several questions, which wait for their turn. */

import { type ReactNode, useEffect, useState } from "react";
import { useApp } from "../../context";
import { nextQuestion } from "../../judgments";
import { useMessages } from "../../messages";
import { Composer } from "../../parts/Composer";
import { Button } from "../../parts/shapes";
import { address, go } from "../../route";
import { fromParams, type Settings, toParams } from "../../settings";
import { useJudgments } from "./useJudgments";
import { wait, waitingQuestions } from "./waiting";

interface Props {
  tab: "results" | "answers";
  settings: Settings;
  /** Search or ask again, for people who send the same question. */
  onAgain?: () => void;
  children?: ReactNode;
}

export function QuestionForm({ tab, settings, onAgain = () => {}, children }: Props) {
  const text = useMessages("quality").form;
  const key = toParams(settings).toString();
  const [draft, setDraft] = useState(settings);
  useEffect(() => setDraft(fromParams(new URLSearchParams(key))), [key]);
  const { kept } = useApp();
  const { isSaving } = useJudgments();
  const next = useNext(tab, settings);
  const submit = () => {
    const written = draft.question
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    if (written.length > 1) wait(kept, written);
    if (!written[0]) return;
    const asked = toParams({ ...draft, question: written[0] });
    if (asked.toString() === key) onAgain();
    else go(address("quality", asked, tab));
  };
  return (
    <Composer
      text={draft.question}
      onText={(question) => setDraft({ ...draft, question })}
      placeholder={text.placeholder}
      settings={draft}
      onSettings={setDraft}
      kind={tab === "answers" ? "ask" : "search"}
      onSubmit={submit}
      button={
        <Button type="submit" kind="primary" aria-disabled={!draft.question.trim()}>
          {tab === "answers" ? text.ask : text.search}
        </Button>
      }
    >
      <div className="row judging-tools">
        {next && (
          <Button kind="quiet" onClick={next}>
            {text.next} <kbd>n</kbd>
          </Button>
        )}
        {children}
        <span className="small">{isSaving && text.saving}</span>
      </div>
    </Composer>
  );
}

/** Go to the next question with the same settings; null if there is no other question. */
export function useNext(tab: "results" | "answers", settings: Settings): (() => void) | null {
  const { kept } = useApp();
  const { questions } = useJudgments();
  const question = nextQuestion(settings.question, waitingQuestions(kept), questions);
  return question === null ? null : () => go(address("quality", toParams({ ...settings, question }), tab));
}
