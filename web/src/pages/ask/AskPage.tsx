/** Ask: a question, its streamed answer with citations, and the conversation before it. */
import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { askStream } from "../../api/stream";
import type { AskResponse, Source } from "../../api/types";
import { useApp } from "../../context";
import { useAnnounce } from "../../parts/Announcer";
import { CopyAs } from "../../parts/CopyAs";
import { CopyButton } from "../../parts/CopyButton";
import { InferredChip } from "../../parts/InferredChip";
import { JudgeThisAnswer } from "../../parts/JudgeAnswer";
import { milliseconds, percent } from "../../parts/names";
import { OriginalDialog } from "../../parts/Original";
import { ErrorBox, Notice } from "../../parts/states";
import { TestTarget } from "../../parts/TestTarget";
import { address, go, usePlace } from "../../route";
import { fromParams, type Settings, toAsk, toParams } from "../../settings";
import "../../style/ask.css";
import { Answer, withSources } from "./Answer";
import { type Asking, conversation, reduce, START, savedTurns, saveTurns } from "./conversation";
import { Sources } from "./Sources";

export function AskPage() {
  const { client, session } = useApp();
  const announce = useAnnounce();
  const { params } = usePlace();
  const key = params.toString();
  const [draft, setDraft] = useState<Settings>(() => fromParams(params));
  const [turns, setTurns] = useState<AskResponse[]>(savedTurns);
  const [asking, dispatch] = useReducer(reduce, START);
  const running = useRef<AbortController | null>(null);
  const settings = fromParams(params);

  const ask = useCallback(
    async (asked: Settings, before: AskResponse[]) => {
      running.current?.abort();
      const abort = new AbortController();
      running.current = abort;
      dispatch({ type: "start", question: asked.question });
      try {
        for await (const event of askStream(client, toAsk(asked, conversation(before)), abort.signal)) {
          if (abort.signal.aborted) return;
          dispatch({ type: "event", event });
          if (event.name === "done")
            announce(`${event.data.answered ? "Answer" : "No answer"}: ${event.data.answer}`);
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(String(error), 0, "Unknown");
        dispatch({ type: "failed", error: known });
      }
    },
    [client, announce],
  );

  // The address is the question: whoever opens it asks it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: an address is asked once
  useEffect(() => {
    const asked = fromParams(new URLSearchParams(key));
    setDraft({ ...asked, question: "" }); // the box is for the next question
    if (!asked.question.trim()) return;
    void ask(asked, turns);
    return () => running.current?.abort();
  }, [key, ask]);

  const keep = (): AskResponse[] => {
    const done = asking.response && turns.at(-1) !== asking.response ? [...turns, asking.response] : turns;
    setTurns(done);
    saveTurns(done);
    return done;
  };
  const submit = (next: Settings) => {
    const before = keep();
    const hash = address("ask", toParams(next));
    if (hash === location.hash) void ask(next, before);
    else go(hash);
  };
  const stop = () => {
    running.current?.abort();
    dispatch({ type: "stopped" });
    announce("Stopped");
  };
  const restart = () => {
    running.current?.abort();
    saveTurns([]);
    setTurns([]);
    go(address("ask"));
  };
  // On a phone, the box would hide the answer.
  const isNarrow = matchMedia("(max-width: 45rem)").matches;
  const isRunning =
    settings.question !== "" && (asking.status === "searching" || asking.status === "answering");

  return (
    <div className="stack">
      <h1 className="visually-hidden">Ask</h1>
      {turns.length > 0 && <Earlier turns={turns} />}
      <form
        className="ask-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (draft.question.trim()) submit(draft);
        }}
      >
        <div className="question">
          <textarea
            aria-label="Question"
            rows={2}
            dir="auto"
            placeholder={settings.question ? "Ask a follow-up question" : "Ask your documents"}
            value={draft.question}
            onChange={(event) => setDraft({ ...draft, question: event.target.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
                event.preventDefault();
                event.currentTarget.form?.requestSubmit();
              }
            }}
          />
          {isRunning ? (
            <button type="button" onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="submit" className="primary" disabled={!draft.question.trim()}>
              Ask
            </button>
          )}
        </div>
        {isNarrow && settings.question !== "" ? (
          <details>
            <summary>Test Target</summary>
            <TestTarget settings={draft} onChange={setDraft} withLanguage />
          </details>
        ) : (
          <TestTarget settings={draft} onChange={setDraft} withLanguage />
        )}
      </form>
      {settings.question !== "" && (
        <Turn
          asking={asking}
          settings={settings}
          onRetry={() => submit(settings)}
          onWithoutInference={() => submit({ ...settings, infer: false })}
          onEdit={() => setDraft({ ...draft, question: settings.question })}
        />
      )}
      {settings.question === "" && session.settings.example && (
        <p>
          For example:{" "}
          <a href={address("ask", { q: session.settings.example })}>{session.settings.example}</a>
        </p>
      )}
      {(settings.question !== "" || turns.length > 0) && (
        <p>
          <button type="button" className="quiet" onClick={restart}>
            Start a new conversation
          </button>
        </p>
      )}
    </div>
  );
}

function Earlier({ turns }: { turns: AskResponse[] }) {
  return (
    <details className="card">
      <summary>
        {turns.length} earlier {turns.length === 1 ? "question" : "questions"} in this conversation
      </summary>
      <ol className="stack">
        {turns.map((turn, index) => (
          <li key={index} dir="auto">
            <strong>{turn.question}</strong>
            <p className="answer">{turn.answer}</p>
          </li>
        ))}
      </ol>
    </details>
  );
}

interface TurnProps {
  asking: Asking;
  settings: Settings;
  onRetry: () => void;
  onWithoutInference: () => void;
  onEdit: () => void;
}

function Turn({ asking, settings, onRetry, onWithoutInference, onEdit }: TurnProps) {
  const [lit, setLit] = useState<{ sentence?: number; source?: number }>({});
  const [open, setOpen] = useState<Source | null>(null);
  const { response, found } = asking;
  const sources = response?.sources ?? found?.sources ?? [];
  const sentences = response?.sentences ?? asking.cited;
  const litSources =
    lit.sentence === undefined
      ? lit.source === undefined
        ? []
        : [lit.source]
      : (sentences[lit.sentence]?.citations ?? []);
  const litSentence =
    lit.sentence ??
    (lit.source === undefined
      ? null
      : sentences.findIndex((each) => each.citations.includes(lit.source as number)));
  const inferred = found?.inferred_filter;
  const complete = found?.complete ?? true;
  const openNumber = (number: number) => setOpen(sources.find((source) => source.number === number) ?? null);
  return (
    <section
      className="turn"
      aria-label="Answer"
      aria-busy={asking.status === "searching" || asking.status === "answering"}
    >
      <header className="row">
        <h2 dir="auto">{asking.question}</h2>
        <button type="button" className="quiet" onClick={onEdit}>
          Edit
        </button>
      </header>
      <div className="stack">
        {asking.status === "failed" && asking.error && <ErrorBox error={asking.error} onRetry={onRetry} />}
        {asking.text === "" && asking.status === "searching" && (
          <p className="answer small">
            <span className="spinner" aria-hidden="true" /> Searching the documents …
          </p>
        )}
        {asking.text === "" && asking.status === "answering" && (
          <p className="answer small">
            <span className="spinner" aria-hidden="true" /> Reading {sources.length} passages …
          </p>
        )}
        {asking.text !== "" && (
          <Answer
            asking={asking}
            lit={litSentence}
            onLight={(sentence) => setLit(sentence === null ? {} : { sentence })}
            onOpen={openNumber}
          />
        )}
        {asking.status === "stopped" && (
          <Notice>You stopped this answer. What you see is not verified as a whole.</Notice>
        )}
        {response && !response.answered && response.answerer.provider !== "none" && (
          <Notice kind="warning">
            {response.closest_passages
              ? "The documents may not answer this. These are the closest passages."
              : "The documents do not answer this."}
          </Notice>
        )}
        {(response?.notes ?? []).map((note) => (
          <Notice key={note.text}>{note.text}</Notice>
        ))}
        {response && <Facts response={response} />}
        {response && (
          <div className="row">
            <CopyButton label="Copy with sources" text={() => withSources(response)} />
            <CopyButton label="Copy the address" text={() => location.href} />
            <CopyAs kind="ask" settings={settings} />
            <a href={address("search", toParams(settings))}>Why these sources?</a>
          </div>
        )}
        {response && (
          <JudgeThisAnswer
            key={`${response.question} ${response.answer}`}
            question={response.searched_question ?? response.question}
          />
        )}
      </div>
      {found && (
        <div className="stack">
          <h3 className="visually-hidden">Sources</h3>
          {!complete && (
            <Notice kind="warning">
              The search is incomplete: a part of it failed or timed out, so sources may be missing.
            </Notice>
          )}
          {inferred && settings.infer && <InferredChip inferred={inferred} onRemove={onWithoutInference} />}
          {found.searched_question && <p className="small">Searched for: {found.searched_question}</p>}
          <Sources
            sources={sources}
            lit={litSources}
            onLight={(source) => setLit(source === null ? {} : { source })}
            onOpen={setOpen}
          />
        </div>
      )}
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </section>
  );
}

function Facts({ response }: { response: AskResponse }) {
  const facts = [
    response.answerer.provider === "none"
      ? "No model was called"
      : response.answerer.quotes
        ? "Quoted from the documents, without a model"
        : (response.answerer.model ?? response.answerer.provider),
    response.confidence !== null &&
      response.confidence !== undefined &&
      `confidence ${percent(response.confidence)}`,
    response.cut_off && "cut off at the maximum length",
    (response.removed_citations ?? 0) > 0 &&
      `${response.removed_citations} citations without a source removed`,
    milliseconds(response.timings.total_ms),
  ];
  return <p className="small">{facts.filter(Boolean).join(" · ")}</p>;
}
