/** Ask the question of the address, and keep its answer for whoever comes back to it. */
import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { askStream } from "../../api/stream";
import type { ConversationTurn } from "../../api/types";
import { useApp, useKept } from "../../context";
import { keptConversations } from "../../conversations";
import { messages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { plain } from "../../parts/names";
import { address, go, goOr, usePlace } from "../../route";
import { fromParams, type Settings, toAsk, toParams } from "../../settings";
import {
  type Asking,
  another,
  arriveAt,
  before,
  begin,
  type Conversations,
  keptTurn,
  reduce,
  START,
  type Turn,
  turnsBefore,
  withKept,
  withTurn,
} from "./conversation";

interface Options {
  /** Where the answers are kept. */
  name: string;
  /** The address of a question. */
  addressOf: (settings: Settings) => string;
  /** Whether a question is sent with those before it. */
  isConversation: boolean;
}

interface Asked {
  asking: Asking;
  /** The answers before this page's question: on a page without a question, those of the present conversation. */
  earlier: Turn[];
  /** Ask the question of this page, perhaps with other settings: the answer takes the place of the present one. */
  again: (next: Settings) => void;
  stop: () => void;
  /** The conversation that the next question belongs to. */
  conversation: string;
  /** Continue a conversation that the service keeps. */
  open: (conversation: string, kept: readonly ConversationTurn[]) => void;
}

export function useAsking(settings: Settings, { name, addressOf, isConversation }: Options): Asked {
  const { client } = useApp();
  const announce = useAnnounce();
  const { entry, isRevisited, params } = usePlace();
  const isNew = params.has("new");
  const key = toParams(settings).toString();
  const [first] = useState(begin);
  const [all, setAll] = useKept<Conversations>(name, first);
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
      keep(
        withTurn(latest.current, at, {
          question: asked.question,
          asked: toParams(asked).toString(),
          response: null,
        }),
      );
      const history = isConversation ? before(turnsBefore(latest.current, at)) : undefined;
      try {
        const named = isConversation ? { conversation: latest.current.current } : {};
        const request = { ...toAsk(asked, history), ...named };
        for await (const event of askStream(client, request, abort.signal)) {
          if (abort.signal.aborted) return;
          dispatch({ type: "event", event });
          if (event.name !== "done") continue;
          keep(withTurn(latest.current, at, { response: event.data }));
          if (event.data.conversation?.saved) keptConversations.note();
          announce(
            (event.data.answered ? messages("ask").answerIs : messages("ask").noAnswerIs)(
              plain(event.data.answer),
            ),
          );
        }
      } catch (error) {
        if (!abort.signal.aborted) dispatch({ type: "failed", error: ApiError.of(error) });
      }
    },
    [client, announce, keep, isConversation],
  );

  // The address is the question: whoever opens it asks it, and whoever comes back to it sees the answer that it had.
  // biome-ignore lint/correctness/useExhaustiveDependencies: an entry of the history is asked once
  useEffect(() => {
    const asked = fromParams(new URLSearchParams(key));
    keep(arriveAt(isNew && !isRevisited ? another(latest.current) : latest.current, entry));
    if (isNew) go(address("ask"), { replace: true });
    if (!asked.question.trim()) return;
    const response = latest.current.turns.find((turn) => turn.entry === entry)?.response;
    if (response) dispatch({ type: "show", response });
    else if (isRevisited) dispatch({ type: "unasked", question: asked.question });
    else void ask(asked, entry);
    return () => running.current?.abort();
  }, [key, entry, ask]);

  const open = useCallback(
    (conversation: string, kept: readonly ConversationTurn[]) =>
      keep(
        withKept(
          latest.current,
          conversation,
          kept.map((turn) => keptTurn(conversation, turn)),
        ),
      ),
    [keep],
  );
  return {
    asking,
    earlier: turnsBefore(all, settings.question === "" ? "" : entry),
    again: (next) => {
      keep(withTurn(latest.current, entry, { response: null }));
      goOr(addressOf(next), () => void ask(next, entry), { replace: true });
    },
    stop: () => {
      running.current?.abort();
      dispatch({ type: "stopped" });
      announce(messages("ask").stopped);
    },
    conversation: all.current,
    open,
  };
}
