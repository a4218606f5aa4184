/** Ask: a question, its streamed answer with citations, and the conversation before it. */

import { useEffect, useState } from "react";
import type { AskResponse, Source } from "../../api/types";
import { useApp, useKept } from "../../context";
import { count, isKnown, milliseconds, percent } from "../../format";
import { CopyAs } from "../../parts/CopyAs";
import { CopyButton } from "../../parts/CopyButton";
import { InferredChip } from "../../parts/InferredChip";
import { JudgeThisAnswer } from "../../parts/JudgeAnswer";
import { plain } from "../../parts/names";
import { OriginalDialog } from "../../parts/Original";
import { QuestionBox } from "../../parts/QuestionBox";
import { Button, Form } from "../../parts/shapes";
import { Notes, Notice } from "../../parts/states";
import { TestTarget } from "../../parts/TestTarget";
import { address, go, usePlace } from "../../route";
import { fromParams, type Settings, toParams } from "../../settings";
import "../../style/ask.css";
import { Answer, withSources } from "./Answer";
import { Closest } from "./Closest";
import { type Answered, type Asking, CONVERSATIONS } from "./conversation";
import { isRunning, Progress } from "./Progress";
import { Sources } from "./Sources";
import { useAsking } from "./useAsking";

function addressOf(settings: Settings): string {
  return address("ask", toParams(settings));
}

const ASKED = { name: CONVERSATIONS, addressOf, isConversation: true };

export function AskPage() {
  const { session } = useApp();
  const { params, entry } = usePlace();
  const settings = fromParams(params);
  const key = toParams(settings).toString();
  const [text, setText] = useKept("ask.draft", "");
  const [target, setTarget] = useState<Settings>(settings);
  useEffect(() => setTarget(fromParams(new URLSearchParams(key))), [key]);
  const { asking, earlier, again, stop, restart } = useAsking(settings, ASKED);
  const isChanged =
    settings.question !== "" && toParams({ ...target, question: settings.question }).toString() !== key;
  const submit = () => {
    if (text.trim()) {
      setText("");
      go(addressOf({ ...target, question: text }));
    } else if (isChanged) again({ ...target, question: settings.question });
  };
  // On a phone, the box would hide the answer.
  const isNarrow = matchMedia("(max-width: 45rem)").matches;
  const isBusy = settings.question !== "" && isRunning(asking);

  return (
    <div className="stack">
      <h1 className="visually-hidden">Ask</h1>
      {earlier.length > 0 && <Others turns={earlier} />}
      <Form className="ask-form" onSubmit={submit}>
        <div className="question">
          <QuestionBox
            rows={2}
            placeholder={settings.question ? "Ask a follow-up question" : "Ask your documents"}
            value={text}
            onChange={setText}
          />
          {isBusy ? (
            <Button onClick={stop}>Stop</Button>
          ) : (
            <Button type="submit" kind="primary" disabled={!text.trim() && !isChanged}>
              {text.trim() || !isChanged ? "Ask" : "Ask again"}
            </Button>
          )}
        </div>
        {isNarrow && settings.question !== "" ? (
          <details>
            <summary>Test Target</summary>
            <TestTarget settings={target} onChange={setTarget} kind="ask" />
          </details>
        ) : (
          <TestTarget settings={target} onChange={setTarget} kind="ask" />
        )}
        {isChanged && !text.trim() && !isBusy && (
          <p className="small">Press Ask again to ask the same question with what you changed.</p>
        )}
      </Form>
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
      {(settings.question !== "" || earlier.length > 0) && (
        <p>
          <Button
            kind="quiet"
            onClick={() => {
              setText("");
              restart();
            }}
          >
            Start a new conversation
          </Button>
        </p>
      )}
    </div>
  );
}

function Others({ turns }: { turns: readonly Answered[] }) {
  return (
    <details className="card">
      <summary>{count(turns.length, "earlier question")} in this conversation</summary>
      <ol className="stack">
        {turns.map(({ entry, response }) => (
          <li key={entry} dir="auto">
            <strong>{plain(response.question)}</strong>
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
    <section className="turn" aria-label="Answer" aria-busy={isRunning(asking)}>
      <header className="row">
        <h2 dir="auto">{plain(asking.question)}</h2>
        <Button kind="quiet" onClick={onEdit}>
          Edit
        </Button>
      </header>
      <div className="stack">
        {asking.text !== "" && (
          <Answer
            asking={asking}
            lit={litSentence}
            onLight={(sentence) => setLit(sentence === null ? {} : { sentence })}
            onOpen={openNumber}
          />
        )}
        <Progress asking={asking} onRetry={onRetry} />
        {response && !response.answered && response.answerer.provider !== "none" && (
          <Notice kind="warning">
            {response.closest_passages
              ? "The documents may not answer this. These are the closest passages."
              : "The documents do not answer this."}
          </Notice>
        )}
        <Notes notes={response?.notes} />
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
          {found.searched_question && (
            <p className="small">
              Searched for: <bdi>{plain(found.searched_question)}</bdi>
            </p>
          )}
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
    isKnown(response.confidence) && `confidence ${percent(response.confidence)}`,
    response.cut_off && "cut off at the maximum length",
    (response.removed_citations ?? 0) > 0 &&
      `${response.removed_citations} citations without a source removed`,
    milliseconds(response.timings.total_ms),
  ];
  return <p className="small">{facts.filter(Boolean).join(" · ")}</p>;
}
