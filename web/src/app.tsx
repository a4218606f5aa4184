/** The frame of every page: who is signed in, the navigation, and the page of the address. */
import { type ReactNode, useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { ApiError, Client } from "./api/client";
import type { Me } from "./api/types";
import { AppContext, type AppValues } from "./context";
import { Kept } from "./kept";
import { AskPage } from "./pages/ask/AskPage";
import { Announcer } from "./parts/Announcer";
import { later } from "./parts/later";
import { SignIn } from "./parts/SignIn";
import { ErrorBox, Loading, Notice } from "./parts/states";
import { UndoBar, waiting } from "./parts/Undo";
import { address, go, usePlace } from "./route";
import type { Session } from "./session";

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
    whoIs(client, session).then(setKnown, (reason: unknown) =>
      setError(reason instanceof ApiError ? reason : new ApiError(String(reason), 500, "Unknown")),
    );
  }, [client, session]);
  useEffect(identify, [identify]);
  const context = useMemo(() => (known ? { client, session, ...known } : null), [client, session, known]);

  if (error?.status === 401) return <SignIn session={session} reason={reasonOf(error)} />;
  if (error)
    return (
      <>
        <ErrorBox error={error} onRetry={identify} />
        {error.status === 403 && (
          <button type="button" onClick={() => void session.signOut()}>
            Sign out
          </button>
        )}
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
  const me = await client.get<Me>("/api/me");
  const isSignedIn = await session.isSignedIn();
  const kept = Kept.open(session.settings.issuer, isSignedIn ? me.name : null);
  if (kept.isAnother) go(address("ask"), { replace: true }); // the address has what they asked
  return { me, kept, isSignedIn };
}

/** What to say to people who were signed in; null to others. */
function reasonOf(error: ApiError): string | null {
  if (error.code === "NotAuthenticated") return null;
  return error.code === "SignedOut" ? "You are signed out." : "Your session has expired. Sign in again.";
}

function Frame({ me, session, isSignedIn }: { me: Me; session: Session; isSignedIn: boolean }) {
  const place = usePlace();
  const isOver = useSyncExternalStore(session.subscribe, session.isOver);
  const name = me.name.replace(/^user:/, "");
  const pages = PAGES.filter((page) => me.rights.includes(page.right));
  const page = pages.find(({ name }) => name === place.page);
  useEffect(() => {
    document.title = `${page?.title ?? "Not found"} · ${session.settings.title}`;
  }, [page, session]);
  return (
    <>
      <button type="button" className="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header className="frame">
        <strong className="brand">{session.settings.title}</strong>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a key={name} href={address(name)} aria-current={name === place.page ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        {session.hasSignIn && (!isSignedIn || isOver) && (
          <button type="button" onClick={() => void session.signIn()}>
            Sign in
          </button>
        )}
        {session.hasSignIn && !isOver && (
          <details className="account">
            <summary>{isSignedIn ? name : "Not signed in"}</summary>
            <div className="menu">
              <p>Rights: {me.rights.join(", ") || "none"}</p>
              <p>
                {me.labels === null ? "Sees every document" : `Sees ${me.labels.join(", ") || "no label"}`}
              </p>
              {isSignedIn && (
                <button type="button" onClick={() => void signOut(session)}>
                  Sign out
                </button>
              )}
            </div>
          </details>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {isOver && (
          <Notice kind="warning">
            {isSignedIn ? `The session of ${name} has expired.` : "You have to sign in."} Sign in to go on.
            What {isSignedIn ? name : "you"} wrote is kept, and nobody else who signs in sees it.
          </Notice>
        )}
        {page ? page.body() : <NotHere name={place.page} />}
      </main>
      <UndoBar />
    </>
  );
}

/** Do what waits for "Undo" as the person who asked for it, then sign out. */
async function signOut(session: Session): Promise<void> {
  await waiting.finish();
  await session.signOut();
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
