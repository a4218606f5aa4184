/** What could not be processed, and what operators do about it. */

import { useState } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import { count, time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { documentKey, documentName } from "../../parts/names";
import { Badge, Button } from "../../parts/shapes";
import { Await, Empty, ErrorBox, Notice } from "../../parts/states";
import { address } from "../../route";

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
  const [result, setResult] = useState<string | null>(null);
  const action = useAction();
  const { isRunning } = action;

  const run = (work: () => Promise<string>) =>
    action.run(async () => {
      const text = await work();
      setResult(text);
      announce(text);
      failures.reload();
      setTimeout(failures.reload, AGAIN_SECONDS * 1000);
    });
  const replay = (request: { documents?: string[]; failed?: boolean }) =>
    run(async () => {
      let sent = 0;
      let token: string | null = null;
      do {
        const answer: Replayed = await client.post("/api/failures/replay", { ...request, next_token: token });
        sent += answer.documents.length;
        token = answer.next_token ?? null;
      } while (token !== null);
      return `${count(sent, "document")} ${sent === 1 ? "is" : "are"} processed again. This takes a moment.`;
    });
  const discard = ({ messages }: Choice) =>
    run(async () => {
      const answer: Discarded = await client.post("/api/failures/discard", { message_ids: messages });
      const { length } = answer.messages;
      return `${count(length, "message")} ${length === 1 ? "was" : "were"} discarded.`;
    });

  const found = failures.data;
  if (!found) return <Await of={failures} what="the failures" />;
  return (
    <div className="stack">
      <div className="row spread">
        <h2>Failures</h2>
        <div className="row">
          <Button onClick={failures.reload}>Refresh</Button>
          {found.documents.length > 0 && (
            <Button kind="primary" disabled={isRunning} onClick={() => replay({ failed: true })}>
              Replay all
            </Button>
          )}
        </div>
      </div>
      {action.error && <ErrorBox error={action.error} />}
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
            onReplay={() => replay({ documents: [failed.uri] })}
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
          isDangerous
          onConfirm={async () => void discard(choice)}
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
        <Badge kind="bad">{failed.status}</Badge>
      </div>
      <p className="small">
        <bdi>{documentKey(failed.uri)}</bdi> · since {time(failed.since)} ·{" "}
        {count(failed.attempts, "attempt")}
        {messages.length > 0 && ` · ${messages.length} in the dead-letter queue`}
      </p>
      {failed.reasons.map((reason) => (
        <p key={reason} dir="auto">
          {reason}
        </p>
      ))}
      <p className="small">What to do: {failed.advice}</p>
      <div className="row">
        <Button disabled={isRunning} aria-label={`Replay ${name}`} onClick={onReplay}>
          Replay
        </Button>
        {messages.length > 0 && (
          <Button
            kind="danger"
            disabled={isRunning}
            aria-label={`Discard the messages about ${name}`}
            onClick={() => onDiscard({ title: `Discard the messages about “${name}”?`, messages })}
          >
            Discard
          </Button>
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
        <Button
          kind="danger"
          disabled={isRunning}
          onClick={() => onDiscard({ title: "Discard this message?", messages: [message.message_id] })}
        >
          Discard
        </Button>
      </div>
    </li>
  );
}
