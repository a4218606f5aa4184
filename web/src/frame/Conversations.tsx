/** The conversations that the service keeps of the person: in the sidebar, or behind a button on narrow screens. */
import { type KeyboardEvent, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ApiError, type Client } from "../api/client";
import type { components } from "../api/schema";
import type { ConversationSummary } from "../api/types";
import { useAction, useApp, useLoaded } from "../context";
import { ageOf, keptConversations, loadConversation, shownConversation } from "../conversations";
import { useMessages } from "../messages";
import { useAnnounce } from "../parts/Announcer";
import { Sheet } from "../parts/Dialog";
import { Icon } from "../parts/Icon";
import { Menu, MenuItem } from "../parts/Menu";
import { asMarkdown, fileName, save } from "../parts/markdown";
import { plain } from "../parts/names";
import { ShareDialog } from "../parts/ShareDialog";
import { Button, IconButton, Skeleton } from "../parts/shapes";
import { sentence } from "../parts/states";
import { useWaiting, waiting } from "../parts/Undo";
import { address, go } from "../route";
import { useStore } from "../store";
import "../style/conversations.css";

/** From so many on, they can be searched. */
const MANY = 8;
const PAGE = 50;

/** From which width the sidebar has a place for them. */
const WIDE = "(min-width: 64rem)";

function onWidth(listener: () => void): () => void {
  const width = matchMedia(WIDE);
  width.addEventListener("change", listener);
  return () => width.removeEventListener("change", listener);
}

/** In the sidebar, or on narrow screens behind a button. */
export function Conversations() {
  const text = useMessages("ask");
  const isWide = useSyncExternalStore(onWidth, () => matchMedia(WIDE).matches);
  const [isOpen, setOpen] = useState(false);
  if (isWide) return <List />;
  return (
    <>
      <IconButton icon="history" label={text.conversations} onClick={() => setOpen(true)} />
      {isOpen && (
        <Sheet title={text.conversations} onClose={() => setOpen(false)}>
          {(close) => <List onOpen={close} />}
        </Sheet>
      )}
    </>
  );
}

function List({ onOpen }: { onOpen?: () => void }) {
  const text = useMessages("ask");
  const parts = useMessages("parts");
  const [query, setQuery] = useState("");
  const [problem, setProblem] = useState("");
  const [pages, setPages] = useState(1);
  const changes = useStore(keptConversations);
  const current = useStore(shownConversation);
  const list = useRef<HTMLElement>(null);
  const gone = useWaiting().map((action) => action.id);
  const { shown, error, isLoading, reload } = useLoaded(
    `conversations ${pages} ${query} ${changes}`,
    (client, signal) => loadPages(client, pages, query.trim(), signal),
  );
  const listed = shown?.conversations.length ?? 0;
  useEffect(() => {
    // The button that showed more may be gone.
    if (pages > 1 && listed > 0 && document.activeElement === document.body)
      linksOf(list.current)
        .at((pages - 1) * PAGE)
        ?.focus();
  }, [pages, listed]);
  if (!shown)
    return (
      <section className="conversations" aria-label={text.conversations} aria-busy={isLoading}>
        {isLoading && <Skeleton lines={3} />}
        {error && error.status !== 401 && (
          <p className="small" role="alert">
            {parts.failed}.{" "}
            <Button kind="quiet" onClick={reload}>
              {parts.tryAgain}
            </Button>
          </p>
        )}
      </section>
    );
  if (!shown.enabled) return onOpen ? <p className="small">{text.notKept}</p> : null;
  const all = shown.conversations.filter(({ id }) => !gone.includes(actionId(id)));
  const isSearched = query !== "" || shown.conversations.length >= MANY;
  return (
    <section className="conversations" ref={list} aria-label={text.conversations}>
      {isSearched && (
        <input
          type="search"
          aria-label={text.searchConversations}
          placeholder={text.searchConversations}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setPages(1);
          }}
        />
      )}
      {problem && (
        <p className="small" role="alert" dir="auto">
          {problem}
        </p>
      )}
      {all.length === 0 && <p className="small">{query ? text.noConversationFound : text.noConversations}</p>}
      {(["today", "week", "older"] as const).map((age) => {
        const own = all.filter(({ updated_at }) => ageOf(updated_at) === age);
        if (own.length === 0) return null;
        return (
          <div key={age}>
            <h2 className="history-age">{text.ages[age]}</h2>
            <ul>
              {own.map((conversation) => (
                <Item
                  key={conversation.id}
                  conversation={conversation}
                  isCurrent={conversation.id === current}
                  onOpen={onOpen}
                  onDelete={() => {
                    setProblem("");
                    focusAfter(list.current, conversation.id);
                  }}
                  onProblem={setProblem}
                />
              ))}
            </ul>
          </div>
        );
      })}
      {shown.next_token && (
        <Button
          kind="quiet"
          className="quiet history-more"
          disabled={isLoading}
          onClick={() => setPages(pages + 1)}
        >
          {text.moreConversations}
        </Button>
      )}
    </section>
  );
}

/** The first pages of the list, as one. */
async function loadPages(
  client: Client,
  pages: number,
  query: string,
  signal: AbortSignal,
): Promise<components["schemas"]["ConversationList"]> {
  const next = (token: string | null) =>
    client.get("/api/conversations", { query: query || undefined, limit: PAGE, next_token: token }, signal);
  let found = await next(null);
  for (let page = 1; page < pages && found.next_token; page += 1) {
    const more = await next(found.next_token);
    found = { ...more, conversations: [...found.conversations, ...more.conversations] };
  }
  return found;
}

function linksOf(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>("[data-conversation]") ?? [])];
}

function actionId(id: string): string {
  return `conversation ${id}`;
}

/** The focus goes to the next conversation, or to the one before, when one goes away. */
function focusAfter(list: HTMLElement | null, id: string): void {
  const links = linksOf(list);
  const at = links.findIndex((link) => link.dataset.conversation === id);
  (links[at + 1] ?? links[at - 1] ?? document.getElementById("main"))?.focus();
}

interface ItemProps {
  conversation: ConversationSummary;
  isCurrent: boolean;
  onOpen: (() => void) | undefined;
  onDelete: () => void;
  /** It could not be deleted, and is in the list again. */
  onProblem: (text: string) => void;
}

function Item({ conversation, isCurrent, onOpen, onDelete, onProblem }: ItemProps) {
  const { client } = useApp();
  const text = useMessages("ask");
  const announce = useAnnounce();
  const [dialog, setDialog] = useState<"rename" | "share" | null>(null);
  const link = useRef<HTMLAnchorElement>(null);
  const { run, error } = useAction();
  const { id, title } = conversation;
  const remove = () => {
    onDelete();
    announce(text.willBeDeleted(title));
    waiting.add({
      id: actionId(id),
      text: text.willBeDeleted(plain(title)),
      run: async (isLeaving) => {
        if (isLeaving) client.deleteAndLeave("/api/conversations/{id}", { id });
        else
          await client
            .delete("/api/conversations/{id}", { id })
            .catch((reason: unknown) =>
              onProblem(text.notDeleted(plain(title), sentence(ApiError.of(reason).message))),
            );
        keptConversations.note();
      },
    });
    if (isCurrent) go(address("ask", { new: "on" }));
  };
  const download = () =>
    run(async () => {
      const whole = await loadConversation(client, id);
      save(fileName(title), asMarkdown(whole));
    });
  const wasRenamed = useRef(false);
  useEffect(() => {
    if (dialog === null && wasRenamed.current) link.current?.focus();
    wasRenamed.current = dialog === "rename";
  }, [dialog]);
  if (dialog === "rename") return <Rename conversation={conversation} onEnd={() => setDialog(null)} />;
  return (
    <li className="history-item">
      <a
        ref={link}
        href={address("ask", {}, id)}
        aria-current={isCurrent ? "page" : undefined}
        data-conversation={id}
        title={plain(title)}
        onClick={onOpen}
      >
        <bdi>{plain(title)}</bdi>
        {conversation.shared && <Icon name="link" size={14} />}
      </a>
      <Menu kind="icon" label={text.moreOf(plain(title))} button={<Icon name="more" />}>
        {(close) => (
          <>
            <MenuItem icon={<Icon name="edit" />} onClick={() => setDialog("rename")}>
              {text.rename}
            </MenuItem>
            <MenuItem
              icon={<Icon name="share" />}
              onClick={() => {
                close();
                setDialog("share");
              }}
            >
              {text.share}
            </MenuItem>
            <MenuItem
              icon={<Icon name="download" />}
              onClick={() => {
                close();
                void download();
              }}
            >
              {text.exportMarkdown}
            </MenuItem>
            <MenuItem icon={<Icon name="delete" />} isDangerous onClick={remove}>
              {text.delete}
            </MenuItem>
          </>
        )}
      </Menu>
      {dialog === "share" && <ShareDialog conversation={conversation} onClose={() => setDialog(null)} />}
      {error && (
        <p className="small" role="alert">
          {error.message}
        </p>
      )}
    </li>
  );
}

function Rename({ conversation, onEnd }: { conversation: ConversationSummary; onEnd: () => void }) {
  const { client } = useApp();
  const text = useMessages("ask");
  const [title, setTitle] = useState(conversation.title);
  const { run, error, isRunning } = useAction();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  const save = () =>
    run(async () => {
      await client.patch("/api/conversations/{id}", { id: conversation.id }, { title: title.trim() });
      keptConversations.note();
      onEnd();
    });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && title.trim() && !isRunning) void save();
    else if (event.key === "Escape") onEnd();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <li>
      <input
        ref={input}
        aria-label={text.newName}
        dir="auto"
        maxLength={200}
        value={title}
        onChange={(event) => setTitle(event.target.value)}
        onKeyDown={onKeyDown}
        onBlur={() => !isRunning && !error && onEnd()}
      />
      {error && (
        <p className="small" role="alert">
          {error.message}
        </p>
      )}
    </li>
  );
}
