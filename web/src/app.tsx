/** The frame of every page: who is signed in, the navigation, and the page of the address. */
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { type ApiError, Client } from "./api/client";
import type { Me } from "./api/types";
import { AppContext } from "./context";
import { AskPage } from "./pages/ask/AskPage";
import { Announcer } from "./parts/Announcer";
import { later } from "./parts/later";
import { SignIn } from "./parts/SignIn";
import { ErrorBox, Loading } from "./parts/states";
import { UndoBar } from "./parts/Undo";
import { address, usePlace } from "./route";
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
  const [me, setMe] = useState<Me | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const identify = useCallback(() => {
    setError(null);
    client.get<Me>("/api/me").then(setMe, (reason: unknown) => setError(reason as ApiError));
  }, [client]);
  useEffect(identify, [identify]);
  const context = useMemo(() => (me ? { client, session, me } : null), [client, session, me]);

  if (error?.status === 401) return <SignIn session={session} onKey={identify} />;
  if (error) return <ErrorBox error={error} onRetry={identify} />;
  if (!context) return <Loading what="your account" />;
  return (
    <AppContext value={context}>
      <Announcer>
        <Frame me={context.me} session={session} />
      </Announcer>
    </AppContext>
  );
}

function Frame({ me, session }: { me: Me; session: Session }) {
  const place = usePlace();
  const pages = PAGES.filter((page) => me.rights.includes(page.right));
  const page = pages.find(({ name }) => name === place.page);
  const [isSignedIn, setSignedIn] = useState(false);
  useEffect(() => {
    void session.isSignedIn().then(setSignedIn);
  }, [session]);
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
        {session.hasSignIn && !isSignedIn && (
          <button type="button" onClick={() => void session.signIn()}>
            Sign in
          </button>
        )}
        {isSignedIn && (
          <details className="account">
            <summary>{me.name.replace(/^user:/, "")}</summary>
            <div className="menu">
              <p>Rights: {me.rights.join(", ")}</p>
              <p>
                {me.labels === null ? "Sees every document" : `Sees ${me.labels.join(", ") || "no label"}`}
              </p>
              <button type="button" onClick={() => void session.signOut()}>
                Sign out
              </button>
            </div>
          </details>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {page ? page.body() : <NotHere name={place.page} />}
      </main>
      <UndoBar />
    </>
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
