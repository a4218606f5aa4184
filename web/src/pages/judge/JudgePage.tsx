/** Judge: results and answers with single keys, the questions that come of it, and what they say of the settings. */

import { Button } from "../../parts/shapes";
import { ErrorBox, Loading } from "../../parts/states";
import { Tabs } from "../../parts/Tabs";
import { usePlace } from "../../route";
import "../../style/judge.css";
import { AnswersTab } from "./Answers";
import { MeasureTab } from "./Measure";
import { QuestionsTab } from "./Questions";
import { ResultsTab } from "./Results";
import { JudgmentsContext, useLoadedJudgments } from "./useJudgments";

const TABS = [
  ["results", "Results"],
  ["answers", "Answers"],
  ["questions", "Questions"],
  ["measure", "Measure"],
] as const;

export default function JudgePage() {
  const judgments = useLoadedJudgments();
  const { id, params } = usePlace();
  const tab = TABS.find(([name]) => name === id)?.[0] ?? "results";
  return (
    <JudgmentsContext value={judgments}>
      <div className="stack judge-page">
        <h1>Quality</h1>
        <Tabs label="What to judge" page="quality" tabs={TABS} current={tab} params={params} />
        {judgments.failure && (
          <div className="box error" role="alert">
            <p>The last judgment could not be saved, so it was undone: {judgments.failure.message}</p>
            <Button onClick={judgments.dismiss}>Close</Button>
          </div>
        )}
        {judgments.error ? (
          <ErrorBox error={judgments.error} onRetry={judgments.reload} />
        ) : judgments.isLoading ? (
          <Loading what="your judgments" />
        ) : tab === "results" ? (
          <ResultsTab />
        ) : tab === "answers" ? (
          <AnswersTab />
        ) : tab === "questions" ? (
          <QuestionsTab />
        ) : (
          <MeasureTab />
        )}
      </div>
    </JudgmentsContext>
  );
}
