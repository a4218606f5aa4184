/** Judge: results and answers with single keys, the questions that come of it, and what they say of the settings. */

import type { Me } from "../../api/types";
import { useApp } from "../../context";
import { useMessages } from "../../messages";
import { Button } from "../../parts/shapes";
import { ErrorBox, Loading } from "../../parts/states";
import { Tabs } from "../../parts/Tabs";
import { usePlace } from "../../route";
import "../../style/judge.css";
import { AnswersTab } from "./Answers";
import { GapsTab } from "./Gaps";
import { MeasureTab } from "./Measure";
import { QuestionsTab } from "./Questions";
import { ResultsTab } from "./Results";
import { JudgmentsContext, useLoadedJudgments } from "./useJudgments";

const TABS = ["results", "answers", "questions", "measure", "gaps"] as const;

export default function JudgePage() {
  const text = useMessages("quality");
  const parts = useMessages("parts");
  const { me } = useApp();
  const judgments = useLoadedJudgments();
  const { id, params } = usePlace();
  const tabs = TABS.filter((name) => name !== "gaps" || seesGaps(me));
  const tab = tabs.find((name) => name === id) ?? "results";
  return (
    <JudgmentsContext value={judgments}>
      <div className="stack judge-page">
        <h1>{text.title}</h1>
        <Tabs
          label={text.tabsLabel}
          page="quality"
          tabs={tabs.map((name) => [name, text.tabs[name]])}
          current={tab}
          params={params}
        />
        {judgments.failure && (
          <div className="box error" role="alert">
            <p>{text.notSaved(judgments.failure.message)}</p>
            <Button onClick={judgments.dismiss}>{parts.close}</Button>
          </div>
        )}
        {judgments.error ? (
          <ErrorBox error={judgments.error} onRetry={judgments.reload} />
        ) : judgments.isLoading ? (
          <Loading what={text.judgments} />
        ) : tab === "results" ? (
          <ResultsTab />
        ) : tab === "answers" ? (
          <AnswersTab />
        ) : tab === "questions" ? (
          <QuestionsTab />
        ) : tab === "measure" ? (
          <MeasureTab />
        ) : (
          <GapsTab />
        )}
      </div>
    </JudgmentsContext>
  );
}

/** The interface lists gaps for those who can do something about them: write documents, or operate. */
function seesGaps({ rights, writable }: Me): boolean {
  return rights.includes("operate") || (rights.includes("write") && writable.length > 0);
}
