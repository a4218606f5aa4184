/** What could not be processed, and what operators do about it. */

import { useState } from "react";
import { ApiError } from "../../api/client";
import type { components } from "../../api/schema";
import { useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { documentKey, documentName } from "../../parts/names";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { address } from "../../route";
import { Confirm } from "./Confirm";

type Schemas = components["schemas"];
type Replayed = Schemas["ReplayAnswer"];
type Discarded = Schemas["DiscardAnswer"];
type Failed = Schemas["FailedDocument"];
type Message = Schemas["Message"];

/** Pages of failures that are read at most; the rest is said to follow. */
const PAGES = 5;
/** What was replayed has been processed by then, most likely. */
const AGAIN_SECONDS = 4;

interface Choice {
  title: string;
  messages: string[];
}

export function Failures() {
  const { client } = useApp();
  const announce = useAnnounce();
  const failures = useLoaded("failures", async (api, signal) => {
    let page = await api.get("/api/failures", {}, signal);
    const first = page;
    const documents = new Map(page.documents.map((each) => [each.uri, each]));
    for (let number = 1; number < PAGES && page.next_token; number++) {
      page = await api.get("/api/failures", { next_token: page.next_token }, signal);
      for (const each of page.documents) documents.set(each.uri, each);
    }
    return { ...first, documents: [...documents.values()], next_token: page.next_token ?? null };
  });
  const [choice, setChoice] = useState<Choice | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);

  const run = async (action: () => Promise<string>) => {
    setRunning(true);
    setError(null);
    try {
      const text = await action();
      setResult(text);
      announce(text);
      failures.reload();
      setTimeout(failures.reload, AGAIN_SECONDS * 1000);
    } catch (reason) {
      setError(ApiError.of(reason));
    } finally {
      setRunning(false);
    }
  };
  const replay = (request: { documents?: string[]; failed?: boolean }) =>
    run(async () => {
      let sent = 0;
      let token: string | null = null;
      do {
        const answer: Replayed = await client.post("/api/failures/replay", { ...request, next_token: token });
        sent += answer.documents.length;
        token = answer.next_token ?? null;
      } while (token !== null);
      return `${sent} ${sent === 1 ? "document is" : "documents are"} processed again. This takes a moment.`;
    });
  const discard = ({ messages }: Choice) =>
    run(async () => {
      const answer: Discarded = await client.post("/api/failures/discard", { message_ids: messages });
      return `${answer.messages.length} ${answer.messages.length === 1 ? "message was" : "messages were"} discarded.`;
    });

  const found = failures.data;
  if (failures.error && !found) return <ErrorBox error={failures.error} onRetry={failures.reload} />;
  if (!found) return <Loading what="the failures" />;
  return (
    <div className="stack">
      <div className="row spread">
        <h2>Failures</h2>
        <div className="row">
          <button type="button" onClick={failures.reload}>
            Refresh
          </button>
          {found.documents.length > 0 && (
            <button
              type="button"
              className="primary"
              disabled={isRunning}
              onClick={() => void replay({ failed: true })}
            >
              Replay all
            </button>
          )}
        </div>
      </div>
      {error && <ErrorBox error={error} />}
      {result && <Notice>{result}</Notice>}
      {!found.complete && (
        <Notice kind="warning">The dead-letter queue has more messages than are shown.</Notice>
      )}
      {found.documents.length === 0 && found.unreadable.length === 0 && (
        <Empty title="Nothing failed">
          <p>Documents that cannot be processed appear here, with the reason.</p>
        </Empty>
      )}
      <ul className="stack">
        {found.documents.map((failed) => (
          <FailedDocument
            key={failed.uri}
            failed={failed}
            isRunning={isRunning}
            onReplay={() => void replay({ documents: [failed.uri] })}
            onDiscard={setChoice}
          />
        ))}
        {found.unreadable.map((message) => (
          <Unreadable
            key={message.message_id}
            message={message}
            isRunning={isRunning}
            onDiscard={setChoice}
          />
        ))}
      </ul>
      {found.next_token && <Notice>More documents failed. Replay these first.</Notice>}
      {choice && (
        <Confirm
          title={choice.title}
          action="Discard"
          onConfirm={() => void discard(choice)}
          onClose={() => setChoice(null)}
        >
          <p>
            {choice.messages.length === 1 ? "The message is" : `${choice.messages.length} messages are`}{" "}
            deleted from the dead-letter queue. What they ask for is not done. This cannot be undone.
          </p>
        </Confirm>
      )}
    </div>
  );
}

interface FailedProps {
  failed: Failed;
  isRunning: boolean;
  onReplay: () => void;
  onDiscard: (choice: Choice) => void;
}

function FailedDocument({ failed, isRunning, onReplay, onDiscard }: FailedProps) {
  const name = documentName(failed.uri);
  const messages = failed.message_ids;
  return (
    <li className="card stack">
      <div className="row spread">
        <h3>
          <a href={address("documents", {}, failed.id)}>
            <bdi>{name}</bdi>
          </a>
        </h3>
        <span className="badge bad">{failed.status}</span>
      </div>
      <p className="small">
        <bdi>{documentKey(failed.uri)}</bdi> · since {time(failed.since)} · {failed.attempts}{" "}
        {failed.attempts === 1 ? "attempt" : "attempts"}
        {messages.length > 0 && ` · ${messages.length} in the dead-letter queue`}
      </p>
      {failed.reasons.map((reason) => (
        <p key={reason} dir="auto">
          {reason}
        </p>
      ))}
      <p className="small">What to do: {failed.advice}</p>
      <div className="row">
        <button type="button" disabled={isRunning} aria-label={`Replay ${name}`} onClick={onReplay}>
          Replay
        </button>
        {messages.length > 0 && (
          <button
            type="button"
            className="danger"
            disabled={isRunning}
            aria-label={`Discard the messages about ${name}`}
            onClick={() => onDiscard({ title: `Discard the messages about “${name}”?`, messages })}
          >
            Discard
          </button>
        )}
      </div>
    </li>
  );
}

interface UnreadableProps {
  message: Message;
  isRunning: boolean;
  onDiscard: (choice: Choice) => void;
}

function Unreadable({ message, isRunning, onDiscard }: UnreadableProps) {
  return (
    <li className="card stack">
      <div className="row spread">
        <h3>A message that names no document</h3>
        <span className="small">{time(message.sent_at)}</span>
      </div>
      {message.cause && <p dir="auto">{message.cause}</p>}
      <details>
        <summary>Its content</summary>
        <pre dir="auto">{message.body}</pre>
      </details>
      <div className="row">
        <button
          type="button"
          className="danger"
          disabled={isRunning}
          onClick={() => onDiscard({ title: "Discard this message?", messages: [message.message_id] })}
        >
          Discard
        </button>
      </div>
    </li>
  );
}
