/** The frame of every page: who is signed in, the navigation, and the page of the address. */

import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { ApiError, Client } from "./api/client";
import type { Me } from "./api/types";
import { AppContext, type AppValues } from "./context";
import { Kept } from "./kept";
import { AskPage } from "./pages/ask/AskPage";
import { Announcer } from "./parts/Announcer";
import { later } from "./parts/later";
import { plain } from "./parts/names";
import { SignIn } from "./parts/SignIn";
import { SignInButton } from "./parts/SignInButton";
import { Button } from "./parts/shapes";
import { ErrorBox, Loading, Notice, sentence } from "./parts/states";
import { UndoBar, waiting } from "./parts/Undo";
import { address, belongTo, usePlace } from "./route";
import { NOT_SIGNED_IN, SESSION_EXPIRED, type Session } from "./session";
import { useStore } from "./store";

const SearchPage = later(() => import("./pages/search/SearchPage"));
const DocumentsPage = later(() => import("./pages/documents/DocumentsPage"));
const JudgePage = later(() => import("./pages/judge/JudgePage"));
const OperatePage = later(() => import("./pages/operate/OperatePage"));

const PAGES: { name: string; title: string; right: "read" | "write" | "operate"; body: () => ReactNode }[] = [
  { name: "ask", title: "Ask", right: "read", body: () => <AskPage /> },
  { name: "search", title: "Search", right: "read", body: () => <SearchPage /> },
  { name: "documents", title: "Documents", right: "read", body: () => <DocumentsPage /> },
  { name: "judge", title: "Judge", right: "read", body: () => <JudgePage /> },
  { name: "operate", title: "Operate", right: "operate", body: () => <OperatePage /> },
];

export function App({ session }: { session: Session }) {
  const client = useMemo(() => new Client(session), [session]);
  const [known, setKnown] = useState<Known | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const identify = useCallback(() => {
    setError(null);
    whoIs(client, session).then(setKnown, (reason: unknown) => setError(ApiError.of(reason)));
  }, [client, session]);
  useEffect(identify, [identify]);
  const context = useMemo(() => (known ? { client, session, ...known } : null), [client, session, known]);

  if (error?.status === 401)
    return <SignIn session={session} reason={error.code === NOT_SIGNED_IN ? null : error.message} />;
  if (error)
    return (
      <>
        <ErrorBox error={error} onRetry={identify} />
        {error.status === 403 && <SignOutButton session={session} />}
      </>
    );
  if (!context) return <Loading what="your account" />;
  return (
    <AppContext value={context}>
      <Announcer>
        <Frame me={context.me} session={session} isSignedIn={context.isSignedIn} />
      </Announcer>
    </AppContext>
  );
}

interface Known extends Pick<AppValues, "me" | "kept"> {
  isSignedIn: boolean;
}

async function whoIs(client: Client, session: Session): Promise<Known> {
  if (session.isSignedOut) belongTo(null);
  const me = await client.get("/api/me", {});
  const isSignedIn = await session.isSignedIn();
  const kept = Kept.open(session.settings.issuer, isSignedIn ? me.name : null);
  belongTo(isSignedIn ? kept.id : null);
  return { me, kept, isSignedIn };
}

function Frame({ me, session, isSignedIn }: { me: Me; session: Session; isSignedIn: boolean }) {
  const place = usePlace();
  const over = useStore(session);
  const name = plain(me.name.replace(/^user:/, ""));
  const pages = PAGES.filter((page) => me.rights.includes(page.right));
  const page = pages.find(({ name }) => name === place.page);
  useEffect(() => {
    document.title = `${page?.title ?? "Not found"} · ${session.settings.title}`;
  }, [page, session]);
  return (
    <>
      <Button className="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </Button>
      <header className="frame">
        <strong className="brand">{session.settings.title}</strong>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a key={name} href={address(name)} aria-current={name === place.page ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        {session.hasSignIn && (!isSignedIn || over) && <SignInButton session={session} />}
        {isSignedIn && over && <SignOutButton session={session} />}
        {session.hasSignIn && !over && (
          <details className="account">
            <summary>{isSignedIn ? name : "Not signed in"}</summary>
            <div className="menu">
              <p>Rights: {me.rights.join(", ") || "none"}</p>
              <p>
                {me.labels === null ? "Sees every document" : `Sees ${me.labels.join(", ") || "no label"}`}
              </p>
              {isSignedIn && <SignOutButton session={session} />}
            </div>
          </details>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {over && (
          <Notice kind="warning">
            {isSignedIn && over.code === SESSION_EXPIRED
              ? `The session of ${name} has expired.`
              : sentence(over.message)}{" "}
            Sign in to continue. What {isSignedIn ? name : "you"} wrote is kept, and nobody else who signs in
            sees it.
          </Notice>
        )}
        {page ? page.body() : <NotHere name={place.page} />}
      </main>
      <UndoBar />
    </>
  );
}

/** Signs out, and does what waits for "Undo" as the person who asked for it. */
function SignOutButton({ session }: { session: Session }) {
  const [isLeaving, setLeaving] = useState(false);
  const signOut = () => {
    setLeaving(true);
    void session.signOut(() => waiting.finish());
  };
  return (
    <Button disabled={isLeaving} onClick={signOut}>
      {isLeaving ? "Signing out …" : "Sign out"}
    </Button>
  );
}

function NotHere({ name }: { name: string }) {
  const known = PAGES.find((page) => page.name === name);
  return (
    <section className="state">
      <h1>{known ? "You cannot open this page" : "There is no such page"}</h1>
      <p>{known ? `It needs the right “${known.right}”. Ask an operator for it.` : "Choose one above."}</p>
    </section>
  );
}
