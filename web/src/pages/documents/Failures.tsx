/** What needs a decision of operators: what can succeed as it is, apart from what cannot. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { Icon } from "../../parts/Icon";
import { documentKey, documentName, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { Await, Empty, ErrorBox, Notice, sentence } from "../../parts/states";
import { address } from "../../route";
import { type Failed, type FailureGroup, failureGroups } from "./failures";
import { iconOf } from "./files";
import { replay as replayAll } from "./replay";

type Schemas = components["schemas"];
type Message = Schemas["Message"];

/** Pages of failures that are read at most; the rest is said to follow. */
const PAGES = 5;
/** What was replayed has been processed by then, most likely. */
const AGAIN_SECONDS = 4;
const SHOWN = 8;

/** What happens after a confirmation. */
interface Choice {
  title: string;
  body: string;
  action: string;
  isDangerous: boolean;
  run: () => void;
}

export function Failures() {
  const { client } = useApp();
  const shared = useMessages("documents");
  const text = shared.failures;
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
  const title = useRef<HTMLHeadingElement>(null);
  const found = failures.data;
  // What people decided on leaves the list, and the focus with it.
  useEffect(() => {
    if (found && result && document.activeElement === document.body) title.current?.focus();
  }, [found, result]);

  const run = (work: () => Promise<string>) => {
    if (action.isRunning) return;
    void action.run(async () => {
      const said = await work();
      setResult(said);
      announce(said);
      failures.reload();
      setTimeout(failures.reload, AGAIN_SECONDS * 1000);
    });
  };
  const replayNow = (documents: readonly Failed[]) =>
    run(async () => {
      const uris = documents.map(({ uri }) => uri);
      return text.replayed(await replayAll(client, uris));
    });
  const replay = (documents: readonly Failed[]) => {
    if (documents.length === 1) return replayNow(documents);
    setChoice({
      title: text.replayTitle(documents.length),
      body: text.replayBody,
      action: text.replay,
      isDangerous: false,
      run: () => replayNow(documents),
    });
  };
  const discard = (asked: string, messages: readonly string[]) =>
    setChoice({
      title: asked,
      body: text.discardBody(messages.length),
      action: text.discard,
      isDangerous: true,
      run: () =>
        run(async () => {
          const answer = await client.post("/api/failures/discard", { message_ids: [...messages] });
          return text.discarded(answer.messages.length);
        }),
    });

  if (!found) return <Await of={failures} what={text.loaded} />;
  const groups = failureGroups(found.documents);
  const possible = groups.filter(({ canReplay }) => canReplay);
  const hopeless = groups.filter(({ canReplay }) => !canReplay);
  const replayable = possible.flatMap(({ documents }) => documents);
  const size = (some: readonly FailureGroup[]) => some.reduce((sum, each) => sum + each.documents.length, 0);
  const cards = (some: readonly FailureGroup[]) =>
    some.map((group) => (
      <Group
        key={JSON.stringify([group.reasons, group.advice])}
        group={group}
        isOnly={some.length === 1}
        onReplay={replay}
        onDiscard={discard}
      />
    ));
  return (
    <div className="stack failures">
      <div className="row spread">
        <h2 ref={title} tabIndex={-1}>
          {text.title}
        </h2>
        <Button onClick={failures.reload}>{shared.refresh}</Button>
      </div>
      {action.error && <ErrorBox error={action.error} />}
      {result && <Notice>{result}</Notice>}
      {!found.complete && <Notice kind="warning">{text.incomplete}</Notice>}
      {groups.length === 0 && found.unreadable.length === 0 && (
        <Empty title={text.nothing} icon="done">
          <p>{text.nothingHint}</p>
        </Empty>
      )}
      {possible.length > 0 && (
        <Part
          title={text.canSucceed(size(possible))}
          aside={
            replayable.length > 1 && (
              <Button kind="primary" aria-disabled={action.isRunning} onClick={() => replay(replayable)}>
                <Icon name="retry" size={16} /> {text.replayAll(replayable.length)}
              </Button>
            )
          }
        >
          {cards(possible)}
        </Part>
      )}
      {hopeless.length > 0 && (
        <Part title={text.cannotSucceed(size(hopeless))} hint={text.cannotHint}>
          {cards(hopeless)}
        </Part>
      )}
      {found.unreadable.length > 0 && (
        <Part title={text.unreadable(found.unreadable.length)} hint={text.unreadableHint}>
          {found.unreadable.map((message) => (
            <Unreadable
              key={message.message_id}
              message={message}
              onDiscard={() => discard(text.discardThis, [message.message_id])}
            />
          ))}
        </Part>
      )}
      {found.next_token && <Notice>{text.moreFailed}</Notice>}
      {choice && (
        <Confirm
          title={choice.title}
          action={choice.action}
          isDangerous={choice.isDangerous}
          onConfirm={async () => choice.run()}
          onClose={() => setChoice(null)}
        >
          <p>{choice.body}</p>
        </Confirm>
      )}
    </div>
  );
}

interface PartProps {
  title: string;
  hint?: string;
  aside?: ReactNode;
  children: ReactNode;
}

function Part({ title, hint, aside, children }: PartProps) {
  return (
    <section className="stack" aria-label={title}>
      <div className="row spread">
        <h3>{title}</h3>
        {aside}
      </div>
      {hint && <p className="small">{hint}</p>}
      <ul className="stack">{children}</ul>
    </section>
  );
}

interface GroupProps {
  group: FailureGroup;
  /** Whether the button above is about the same documents. */
  isOnly: boolean;
  onReplay: (documents: readonly Failed[]) => void;
  onDiscard: (title: string, messages: readonly string[]) => void;
}

function Group({
  group: { reasons, advice, canReplay, documents },
  isOnly,
  onReplay,
  onDiscard,
}: GroupProps) {
  const text = useMessages("documents").failures;
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || documents.length <= SHOWN + 1 ? documents : documents.slice(0, SHOWN);
  const first = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isWhole) first.current?.focus();
  }, [isWhole]);
  return (
    <li className="card stack">
      <div className="row spread failure-head">
        <div>
          {reasons.map((reason) => (
            <p key={reason} className="failure-reason" dir="auto">
              {sentence(plain(reason))}
            </p>
          ))}
          <p className="small">{text.whatToDo(sentence(plain(advice)))}</p>
        </div>
        {canReplay && !isOnly && documents.length > 1 && (
          <Button onClick={() => onReplay(documents)}>{text.replayThese(documents.length)}</Button>
        )}
      </div>
      <ul className="failed">
        {shown.map((document, index) => {
          const name = documentName(document.uri);
          const { message_ids: messages, attempts } = document;
          return (
            <li key={document.uri}>
              <Icon name={iconOf(document.uri)} />
              <div className="what">
                <a ref={index === SHOWN ? first : undefined} href={address("documents", {}, document.id)}>
                  <bdi>{name}</bdi>
                </a>
                <span className="small">
                  <bdi>{documentKey(document.uri).replace(/[^/]*$/, "")}</bdi>
                  {" · "}
                  {[
                    text.since(time(document.since)),
                    attempts > 0 && text.attempts(attempts),
                    messages.length > 0 && text.waiting(messages.length),
                  ]
                    .filter(Boolean)
                    .join(" · ")}
                </span>
              </div>
              <div className="row">
                {canReplay && (
                  <Button aria-label={text.replayOne(name)} onClick={() => onReplay([document])}>
                    {text.replay}
                  </Button>
                )}
                {messages.length > 0 && (
                  <Button
                    kind="danger"
                    aria-label={text.discardOf(name)}
                    onClick={() => onDiscard(text.discardTitle(name), messages)}
                  >
                    {text.discard}
                  </Button>
                )}
              </div>
            </li>
          );
        })}
      </ul>
      {shown.length < documents.length && (
        <div>
          <Button kind="quiet" onClick={() => setWhole(true)}>
            {text.more(documents.length - shown.length)}
          </Button>
        </div>
      )}
    </li>
  );
}

function Unreadable({ message, onDiscard }: { message: Message; onDiscard: () => void }) {
  const text = useMessages("documents").failures;
  return (
    <li className="card stack">
      <div className="row spread">
        <h4>{text.sentAt(time(message.sent_at))}</h4>
        <Button kind="danger" onClick={onDiscard}>
          {text.discard}
        </Button>
      </div>
      {message.cause && <p dir="auto">{sentence(plain(message.cause))}</p>}
      <details>
        <summary>{text.content}</summary>
        <pre dir="auto">{plain(message.body)}</pre>
      </details>
    </li>
  );
}
