/** The frame of every page: a sidebar on wide screens; a bar at the top on others, and one at the bottom on phones. */
import { useEffect, useState } from "react";
import type { Me } from "../api/types";
import { useMessages } from "../messages";
import { Icon, type IconName, Logo } from "../parts/Icon";
import type { later } from "../parts/later";
import { SignInButton } from "../parts/SignInButton";
import { Button, Hidden } from "../parts/shapes";
import { sentence } from "../parts/states";
import { UndoBar } from "../parts/Undo";
import { address, usePlace } from "../route";
import { SESSION_EXPIRED, type Session } from "../session";
import { useStore } from "../store";
import { Account, nameOf, SignOutButton } from "./Account";
import { Conversations } from "./Conversations";
import { Palette } from "./Palette";
import "../style/frame.css";

export interface PageEntry {
  name: "ask" | "documents" | "search" | "quality" | "admin";
  icon: IconName;
  right: "read" | "write" | "operate";
  Page: ReturnType<typeof later>;
}

interface Props {
  pages: readonly PageEntry[];
  me: Me;
  session: Session;
  isSignedIn: boolean;
}

export function Frame({ pages, me, session, isSignedIn }: Props) {
  const text = useMessages("frame");
  const place = usePlace();
  const over = useStore(session);
  const own = pages.filter((page) => me.rights.includes(page.right));
  const page = own.find(({ name }) => name === place.page);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const { title } = session.settings;
  useEffect(() => {
    document.title = `${page ? text.page[page.name] : text.notFound} · ${title}`;
  }, [page, text, title]);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey) || event.altKey) return;
      event.preventDefault();
      setPaletteOpen(true);
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  return (
    <div className="frame">
      <Button className="skip" onClick={() => document.getElementById("main")?.focus()}>
        {text.skip}
      </Button>
      <header className="side">
        <a className="brand" href={address("ask")}>
          <Logo /> <span>{title}</span>
        </a>
        <div className="start">
          <a className="new" href={address("ask", { new: "on" })}>
            <Icon name="add" /> <span>{text.newQuestion}</span>
          </a>
          <Button
            className="palette-button"
            title={text.palette}
            aria-keyshortcuts="Meta+K Control+K"
            onClick={() => setPaletteOpen(true)}
          >
            <Icon name="search" />
            <Hidden>{text.palette}</Hidden>
            <kbd>{isApple() ? "⌘K" : text.controlK}</kbd>
          </Button>
        </div>
        {isSignedIn && <Conversations />}
        <nav aria-label={text.pages}>
          {own.map(({ name, icon }) => (
            <a key={name} href={address(name)} aria-current={name === place.page ? "page" : undefined}>
              <Icon name={icon} /> <span>{text.page[name]}</span>
            </a>
          ))}
        </nav>
        {!over && (
          <div className="end">
            {session.hasSignIn && !isSignedIn && <SignInButton session={session} isPrimary />}
            <Account me={me} session={session} isSignedIn={isSignedIn} />
          </div>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {over && (
          <SessionCard
            session={session}
            text={
              isSignedIn && over.code === SESSION_EXPIRED ? text.expired(nameOf(me)) : sentence(over.message)
            }
            name={isSignedIn ? nameOf(me) : null}
          />
        )}
        {page ? <page.Page /> : <NotHere page={pages.find(({ name }) => name === place.page) ?? null} />}
      </main>
      <UndoBar />
      {isPaletteOpen && <Palette pages={own} onClose={() => setPaletteOpen(false)} />}
    </div>
  );
}

function isApple(): boolean {
  return /mac|iphone|ipad/i.test(navigator.platform);
}

interface SessionProps {
  session: Session;
  text: string;
  /** Who is signed in; null if nobody is. */
  name: string | null;
}

/** The proof is no longer accepted: the page stays as it is until somebody signs in. */
function SessionCard({ session, text, name }: SessionProps) {
  const messages = useMessages("frame");
  return (
    <section className="session card" aria-label={messages.signInAgain}>
      <Logo size={32} />
      <div className="grow">
        <p>
          <strong dir="auto">{text}</strong>
        </p>
        <p dir="auto">{name === null ? messages.draftKeptForYou : messages.draftKept(name)}</p>
      </div>
      <div className="row">
        <SignInButton session={session} isPrimary />
        {name !== null && <SignOutButton session={session} />}
      </div>
    </section>
  );
}

function NotHere({ page }: { page: PageEntry | null }) {
  const text = useMessages("frame");
  return (
    <section className="state">
      <Icon name={page ? "lock" : "help"} size={28} />
      <h1>{page ? text.refused : text.notFound}</h1>
      <p>{page ? text.refusedHint(page.right) : text.notFoundHint}</p>
      <p>
        <a href={address("ask")}>{text.toAsk}</a>
      </p>
    </section>
  );
}
