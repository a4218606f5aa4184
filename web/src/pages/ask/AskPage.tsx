/** Ask: a question, its streamed answer with citations, and the conversation before it. */
import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { askStream } from "../../api/stream";
import type { AskResponse, Source } from "../../api/types";
import { useApp, useKept } from "../../context";
import { useAnnounce } from "../../parts/Announcer";
import { CopyAs } from "../../parts/CopyAs";
import { CopyButton } from "../../parts/CopyButton";
import { InferredChip } from "../../parts/InferredChip";
import { JudgeThisAnswer } from "../../parts/JudgeAnswer";
import { milliseconds, percent, plain } from "../../parts/names";
import { OriginalDialog } from "../../parts/Original";
import { ErrorBox, Notice } from "../../parts/states";
import { TestTarget } from "../../parts/TestTarget";
import { address, go, goOr, usePlace } from "../../route";
import { fromParams, type Settings, toAsk, toParams } from "../../settings";
import "../../style/ask.css";
import { Answer, withSources } from "./Answer";
import { Closest } from "./Closest";
import {
  type Asking,
  another,
  before,
  CONVERSATIONS,
  type Conversations,
  type Turn as Kept,
  NO_CONVERSATIONS,
  reduce,
  START,
  turnsBefore,
  withTurn,
} from "./conversation";
import { Sources } from "./Sources";

export function AskPage() {
  const { client, session } = useApp();
  const announce = useAnnounce();
  const { params, entry, isRevisited } = usePlace();
  const key = params.toString();
  const settings = fromParams(params);
  const [text, setText] = useKept("ask.draft", "");
  const [target, setTarget] = useState<Settings>(settings);
  const [all, setAll] = useKept<Conversations>(CONVERSATIONS, NO_CONVERSATIONS);
  const latest = useRef(all);
  const [asking, dispatch] = useReducer(reduce, START);
  const running = useRef<AbortController | null>(null);

  const keep = useCallback(
    (next: Conversations) => {
      latest.current = next;
      setAll(next);
    },
    [setAll],
  );
  const ask = useCallback(
    async (asked: Settings, at: string) => {
      running.current?.abort();
      const abort = new AbortController();
      running.current = abort;
      dispatch({ type: "start", question: asked.question });
      const request = toAsk(asked, before(turnsBefore(latest.current, at)));
      try {
        for await (const event of askStream(client, request, abort.signal)) {
          if (abort.signal.aborted) return;
          dispatch({ type: "event", event });
          if (event.name !== "done") continue;
          keep(withTurn(latest.current, at, event.data));
          announce(`${event.data.answered ? "Answer" : "No answer"}: ${event.data.answer}`);
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(String(error), 500, "Unknown");
        dispatch({ type: "failed", error: known });
      }
    },
    [client, announce, keep],
  );

  // The address is the question: whoever opens it asks it, and whoever comes back to it sees the answer that it had.
  // biome-ignore lint/correctness/useExhaustiveDependencies: an entry of the history is asked once
  useEffect(() => {
    const asked = fromParams(new URLSearchParams(key));
    setTarget(asked);
    if (!asked.question.trim()) return;
    const kept = latest.current.turns.find((turn) => turn.entry === entry);
    if (kept) {
      dispatch({ type: "show", response: kept.response });
      keep({ ...latest.current, current: kept.conversation });
    } else if (isRevisited) dispatch({ type: "unasked", question: asked.question });
    else void ask(asked, entry);
    return () => running.current?.abort();
  }, [key, entry, ask]);

  /** Ask the question of this page, with other settings perhaps: its answer takes the place of the one before. */
  const again = (next: Settings) => {
    keep({ ...latest.current, turns: latest.current.turns.filter((turn) => turn.entry !== entry) });
    goOr(address("ask", toParams(next)), () => void ask(next, entry), { replace: true });
  };
  const submit = () => {
    if (text.trim()) {
      setText("");
      go(address("ask", toParams({ ...target, question: text })));
    } else if (isChanged) again({ ...target, question: settings.question });
  };
  const stop = () => {
    running.current?.abort();
    dispatch({ type: "stopped" });
    announce("Stopped");
  };
  const restart = () => {
    running.current?.abort();
    keep(another(latest.current));
    setText("");
    go(address("ask"));
  };
  const isChanged =
    settings.question !== "" &&
    toParams({ ...target, question: settings.question }).toString() !== toParams(settings).toString();
  const turns = turnsBefore(all, settings.question === "" ? "" : entry);
  // On a phone, the box would hide the answer.
  const isNarrow = matchMedia("(max-width: 45rem)").matches;
  const isRunning =
    settings.question !== "" && (asking.status === "searching" || asking.status === "answering");

  return (
    <div className="stack">
      <h1 className="visually-hidden">Ask</h1>
      {turns.length > 0 && <Others turns={turns} />}
      <form
        className="ask-form"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <div className="question">
          <textarea
            aria-label="Question"
            rows={2}
            dir="auto"
            placeholder={settings.question ? "Ask a follow-up question" : "Ask your documents"}
            value={text}
            onChange={(event) => setText(event.target.value)}
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
            <button type="submit" className="primary" disabled={!text.trim() && !isChanged}>
              {text.trim() || !isChanged ? "Ask" : "Ask again"}
            </button>
          )}
        </div>
        {isNarrow && settings.question !== "" ? (
          <details>
            <summary>Test Target</summary>
            <TestTarget settings={target} onChange={setTarget} withLanguage />
          </details>
        ) : (
          <TestTarget settings={target} onChange={setTarget} withLanguage />
        )}
        {isChanged && !text.trim() && !isRunning && (
          <p className="small">Press Ask again to ask the same question with what you changed.</p>
        )}
      </form>
      {settings.question !== "" && (
        <Turn
          key={entry}
          asking={asking}
          settings={settings}
          onRetry={() => again(settings)}
          onWithoutInference={() => again({ ...settings, infer: false })}
          onEdit={() => setText(settings.question)}
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

function Others({ turns }: { turns: readonly Kept[] }) {
  return (
    <details className="card">
      <summary>
        {turns.length} earlier {turns.length === 1 ? "question" : "questions"} in this conversation
      </summary>
      <ol className="stack">
        {turns.map(({ entry, response }) => (
          <li key={entry} dir="auto">
            <strong>{response.question}</strong>
            <p className="answer">{plain(response.answer)}</p>
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
        {response &&
          !response.answered &&
          (response.notes ?? [])
            .filter((note) => ["language", "question"].includes(note.kind))
            .map((note) => <Notice key={note.kind}>{note.text}.</Notice>)}
        {asking.status === "unasked" && (
          <Notice>
            You came back to a question that was not answered.{" "}
            <button type="button" onClick={onRetry}>
              Ask it again
            </button>
          </Notice>
        )}
        {response && !response.answered && sources.length === 0 && (
          <Closest settings={settings} question={response.searched_question ?? response.question} />
        )}
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
