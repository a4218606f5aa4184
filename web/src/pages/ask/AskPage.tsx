/** Ask: questions, their streamed answers with citations, and the conversation that they make. */

import { useEffect, useRef, useState } from "react";
import type { ConversationTurn } from "../../api/types";
import { type Loaded, useApp, useKept, useLoaded } from "../../context";
import { loadConversation, sharedId, shownConversation } from "../../conversations";
import { useMessages } from "../../messages";
import { Composer } from "../../parts/Composer";
import { CopyButton } from "../../parts/CopyButton";
import { conditionsOf } from "../../parts/filters";
import { plain } from "../../parts/names";
import { Suggestions } from "../../parts/Suggestions";
import { Button, Skeleton } from "../../parts/shapes";
import { Await, Empty, Notice } from "../../parts/states";
import { address, go, usePlace } from "../../route";
import { fromParams, type Settings, toParams, withoutInferred } from "../../settings";
import "../../style/ask.css";
import { type Asking, CONVERSATIONS, keptTurn, START, shown, type Turn } from "./conversation";
import { Exchange } from "./Exchange";
import { isRunning } from "./Progress";
import { useAsking } from "./useAsking";

function addressOf(settings: Settings): string {
  return address("ask", toParams(settings));
}

const ASKED = { name: CONVERSATIONS, addressOf, isConversation: true };

export default function AskPage() {
  const { id } = usePlace();
  return id?.startsWith(sharedId("")) ? <SharedConversation key={id} id={id} /> : <Asked id={id} />;
}

/** The conversation of the person: what the service keeps of it if the address has one, else that of the tab. */
function Asked({ id }: { id: string | null }) {
  const messages = useMessages("ask");
  const { params, entry } = usePlace();
  const settings = fromParams(params);
  const key = toParams(settings).toString();
  const [text, setText] = useKept("ask.draft", "");
  const [target, setTarget] = useState<Settings>(settings);
  useEffect(() => setTarget(fromParams(new URLSearchParams(key))), [key]);
  const { asking, earlier, again, stop, conversation, open } = useAsking(settings, ASKED);
  const opened = useOpened(id, open);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // On a touch screen, the keyboard would cover the page.
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, []);

  const isWritten = text.trim() !== "";
  const isAsked = settings.question !== "";
  const isChanged = isAsked && toParams({ ...target, question: settings.question }).toString() !== key;
  const current: Asking =
    asking.question === settings.question ? asking : { ...START, question: settings.question };
  const isBusy = isAsked && isRunning(current);
  const submit = () => {
    if (isBusy) return;
    box.current?.focus();
    if (isWritten) {
      setText("");
      go(addressOf({ ...target, question: text }));
    } else if (isChanged) again({ ...target, question: settings.question });
  };
  const edit = (question: string) => {
    setText(question);
    box.current?.focus();
  };
  const isOpening = id !== null && (!opened?.data || conversation !== id);
  const turns: Shown[] = isOpening
    ? []
    : [...earlier.map(shownTurn), ...(isAsked ? [{ entry, asking: current, settings }] : [])];
  const last = turns.at(-1);
  const inferred = isAsked ? (current.found?.inferred_filter ?? null) : null;
  const showing = id ?? (last ? conversation : null);
  useEffect(() => {
    shownConversation.show(showing);
    return () => shownConversation.show(null);
  }, [showing]);

  return (
    <div className={last || isOpening ? "ask" : "ask start-page"}>
      <h1 className={last || isOpening ? "visually-hidden" : ""}>{messages.title}</h1>
      {isOpening && opened && <Opening of={opened} />}
      {last && (
        <div className="exchanges">
          {turns.map((turn) => (
            <Exchange
              key={turn.entry}
              asking={turn.asking}
              settings={turn.settings}
              isLast={turn === last}
              kept={turn.kept}
              onRetry={() => (turn.entry === entry ? again(settings) : go(addressOf(turn.settings)))}
              onEdit={() => edit(turn.asking.question)}
            />
          ))}
        </div>
      )}
      <Composer
        box={box}
        text={text}
        onText={setText}
        placeholder={last ? messages.followUp : messages.placeholder}
        settings={target}
        onSettings={setTarget}
        kind="ask"
        inferred={inferred}
        onWithoutInferred={(key) =>
          again(withoutInferred(settings, conditionsOf(inferred?.filter ?? {}), key))
        }
        onSubmit={submit}
        button={
          isBusy ? (
            <Button
              onClick={() => {
                stop();
                box.current?.focus();
              }}
            >
              {messages.stop}
            </Button>
          ) : (
            <Button type="submit" kind="primary" aria-disabled={!isWritten && !isChanged}>
              {isWritten || !isChanged ? messages.ask : messages.askAgain}
            </Button>
          )
        }
      >
        {isChanged && !isWritten && !isBusy && <p className="small">{messages.changed}</p>}
      </Composer>
      {!last && !isOpening && <Beginning />}
    </div>
  );
}

interface Shown {
  entry: string;
  asking: Asking;
  settings: Settings;
  kept?: Pick<Turn, "withheld" | "changed"> | undefined;
}

function shownTurn(turn: Turn): Shown {
  const { entry, question, asked, response } = turn;
  return {
    entry,
    asking: response ? shown(response) : { ...START, question, status: "unasked" },
    settings: { ...fromParams(new URLSearchParams(asked)), question: question || (response?.question ?? "") },
    kept: turn,
  };
}

/** Load the conversation that an address names; null for one without. */
function useOpened(id: string | null, open: (id: string, turns: readonly ConversationTurn[]) => void) {
  const loaded = useLoaded(`conversation ${id}`, async (client, signal) =>
    id === null ? null : loadConversation(client, id, signal),
  );
  const { data } = loaded;
  useEffect(() => {
    if (id !== null && data) open(id, data.turns);
  }, [id, data, open]);
  return id === null ? null : loaded;
}

function Opening({ of }: { of: Loaded<unknown> }) {
  const text = useMessages("ask");
  const { isSignedIn } = useApp();
  return (
    <div className="exchanges">
      {!of.error && <Skeleton lines={6} />}
      <Await of={of} what={text.theConversation} />
      {of.error && !isSignedIn && <Notice>{text.signInToSee}</Notice>}
    </div>
  );
}

/** A conversation that somebody else shared, as far as the reader may see it. */
function SharedConversation({ id }: { id: string }) {
  const text = useMessages("ask");
  const loaded = useLoaded(id, (client, signal) => loadConversation(client, id, signal));
  const { data } = loaded;
  if (!data)
    return (
      <div className="ask">
        <h1 className="visually-hidden">{text.title}</h1>
        <Opening of={loaded} />
      </div>
    );
  const turns = data.turns.map((turn) => shownTurn(keptTurn(data.id, turn)));
  return (
    <div className="ask">
      <h1 dir="auto">{plain(data.title)}</h1>
      <p className="box info shared-by" dir="auto">
        {text.sharedBy(plain(data.owner.replace(/^user:/, "")))}
        {data.withheld_turns > 0 && ` ${text.withheldTurns(data.withheld_turns)}`}
      </p>
      <div className="exchanges">
        {turns.map((turn) => (
          <Exchange
            key={turn.entry}
            asking={turn.asking}
            settings={turn.settings}
            kept={turn.kept}
            isLast={false}
            onRetry={() => go(addressOf(turn.settings))}
            onEdit={() => go(addressOf(turn.settings))}
          />
        ))}
      </div>
    </div>
  );
}

/** Before the first question: what the documents can answer, or what to do without documents. */
function Beginning() {
  const { data } = useLoaded("first document", (client, signal) =>
    client.get("/api/documents", { limit: 1 }, signal),
  );
  if (!data) return null;
  return data.documents.length === 0 ? <FirstSteps /> : <Suggestions page="ask" />;
}

function FirstSteps() {
  const { me } = useApp();
  const text = useMessages("ask");
  const upload = {
    title: text.upload,
    body: (
      <>
        <p>{text.uploadHint}</p>
        <a href={address("documents")}>{text.toUpload}</a>
      </>
    ),
  };
  return (
    <Empty
      title={text.firstSteps}
      icon="documents"
      steps={[
        ...(me.rights.includes("write") ? [upload] : []),
        { title: text.askFirst, body: <p>{text.askFirstHint}</p> },
        {
          title: text.invite,
          body: (
            <>
              <p>{text.inviteHint}</p>
              <CopyButton
                icon="link"
                label={text.copyAddress}
                text={() => location.href.split("#")[0] ?? ""}
              />
            </>
          ),
        },
      ]}
    />
  );
}
