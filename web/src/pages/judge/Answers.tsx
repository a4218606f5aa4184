/** Judge the answer to a question; a bad one becomes a regression question. */
import { useCallback, useEffect, useReducer, useState } from "react";
import { ApiError } from "../../api/client";
import { askStream } from "../../api/stream";
import type { Source } from "../../api/types";
import { useApp, useKept } from "../../context";
import { questionId } from "../../judgments";
import { useAnnounce } from "../../parts/Announcer";
import { JudgeAnswer, Reference, type Verdict } from "../../parts/JudgeAnswer";
import { OriginalDialog } from "../../parts/Original";
import { Empty, ErrorBox, Notice } from "../../parts/states";
import { usePlace } from "../../route";
import { fromParams, type Settings, toAsk, toParams } from "../../settings";
import { Answer } from "../ask/Answer";
import { type Conversations, NO_CONVERSATIONS, reduce, START, withTurn } from "../ask/conversation";
import { Sources } from "../ask/Sources";
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
  const { client } = useApp();
  const { questions, judge, undo } = useJudgments();
  const announce = useAnnounce();
  const [asking, dispatch] = useReducer(reduce, START);
  const [turn, setTurn] = useState(0);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [open, setOpen] = useState<Source | null>(null);
  const next = useNext("answers", settings);
  const id = questionId(settings.question, questions);
  const verdict = questions.find((question) => question.id === id)?.answer ?? null;

  const { entry } = usePlace();
  const [answered, setAnswered] = useKept<Conversations>("judge.answers", NO_CONVERSATIONS);
  const again = () => {
    setAnswered({ ...answered, turns: answered.turns.filter((each) => each.entry !== entry) });
    setTurn((before) => before + 1);
  };

  const key = toParams(settings).toString();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the entry stands for the settings, and is asked once
  useEffect(() => {
    const before = answered.turns.find((each) => each.entry === entry);
    if (before) return dispatch({ type: "show", response: before.response });
    const abort = new AbortController();
    const ask = async () => {
      dispatch({ type: "start", question: settings.question });
      try {
        for await (const event of askStream(client, toAsk(settings), abort.signal)) {
          if (abort.signal.aborted) return;
          dispatch({ type: "event", event });
          if (event.name !== "done") continue;
          setAnswered(withTurn(answered, entry, event.data));
          announce(`Answer: ${event.data.answer}`);
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(String(error), 0, "Unknown");
        dispatch({ type: "failed", error: known });
      }
    };
    void ask();
    return () => abort.abort();
  }, [client, turn, entry, key]);

  const isDone = asking.status === "done";
  const decide = useCallback(
    (given: Verdict | null) => {
      if (!isDone) return;
      const change = { query_id: id, query: settings.question, document: null };
      judge({ ...change, grade: given?.grade ?? null, reference: given?.reference ?? null });
      announce(
        given === null ? "Judgment removed" : given.grade ? "Judged good" : "Kept as regression question",
      );
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
      <QuestionForm tab="answers" settings={settings} onAgain={again}>
        <button type="button" onClick={takeBack}>
          Undo <kbd>u</kbd>
        </button>
        <KeysHelp keys={KEYS} {...keys} isOpen={isHelpOpen} setOpen={setHelpOpen} />
      </QuestionForm>
      <section className="turn" aria-label="Answer" aria-busy={!isDone && asking.status !== "failed"}>
        <div className="stack">
          {asking.status === "failed" && asking.error && <ErrorBox error={asking.error} onRetry={again} />}
          {asking.text === "" && !isDone && asking.status !== "failed" && (
            <p className="answer small">
              <span className="spinner" aria-hidden="true" />{" "}
              {asking.status === "searching" ? "Searching the documents …" : "Answering …"}
            </p>
          )}
          {asking.response && !asking.response.complete && (
            <Notice kind="warning">The search was incomplete, so sources may be missing.</Notice>
          )}
          {asking.response && !asking.response.answered && (
            <Notice kind="warning">The answerer says that the documents may not answer this.</Notice>
          )}
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
