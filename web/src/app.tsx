/** The pages, and who uses them. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { ApiError, Client } from "./api/client";
import type { Me } from "./api/types";
import { AppContext, type AppValues } from "./context";
import { SignOutButton } from "./frame/Account";
import { Frame, type PageEntry } from "./frame/Frame";
import { Kept } from "./kept";
import { useMessages } from "./messages";
import { AskPage } from "./pages/ask/AskPage";
import { Announcer } from "./parts/Announcer";
import { Logo } from "./parts/Icon";
import { later } from "./parts/later";
import { ErrorBox, Loading } from "./parts/states";
import { Welcome } from "./parts/Welcome";
import { belongTo, parsePlace } from "./route";
import { NOT_SIGNED_IN, type Session } from "./session";

const SearchPage = later(() => import("./pages/search/SearchPage"));
const DocumentsPage = later(() => import("./pages/documents/DocumentsPage"));
const JudgePage = later(() => import("./pages/judge/JudgePage"));
const OperatePage = later(() => import("./pages/operate/OperatePage"));

const PAGES: readonly PageEntry[] = [
  { name: "ask", icon: "ask", right: "read", body: () => <AskPage /> },
  {
    name: "documents",
    icon: "documents",
    right: "read",
    load: DocumentsPage.load,
    body: () => <DocumentsPage />,
  },
  { name: "search", icon: "search", right: "read", load: SearchPage.load, body: () => <SearchPage /> },
  { name: "quality", icon: "quality", right: "read", load: JudgePage.load, body: () => <JudgePage /> },
  { name: "admin", icon: "admin", right: "operate", load: OperatePage.load, body: () => <OperatePage /> },
];

PAGES.find(({ name }) => name === parsePlace(location.hash).page)?.load?.();

export function App({ session }: { session: Session }) {
  const text = useMessages("frame");
  const client = useMemo(() => new Client(session), [session]);
  const [known, setKnown] = useState<Known | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const identify = useCallback(() => {
    setError(null);
    whoIs(client, session).then(setKnown, (reason: unknown) => setError(ApiError.of(reason)));
  }, [client, session]);
  useEffect(identify, [identify]);
  const refreshMe = useCallback(() => {
    client.get("/api/me", {}).then(
      (me) => setKnown((before) => before && withMe(before, me)),
      () => undefined, // what needs it says so
    );
  }, [client]);
  useEffect(() => {
    const onShown = () => document.hidden || refreshMe();
    document.addEventListener("visibilitychange", onShown);
    return () => document.removeEventListener("visibilitychange", onShown);
  }, [refreshMe]);
  const context = useMemo(
    () => (known ? { client, session, refreshMe, ...known } : null),
    [client, session, refreshMe, known],
  );

  if (error?.status === 401)
    return <Welcome session={session} reason={error.code === NOT_SIGNED_IN ? null : error.message} />;
  if (error)
    return (
      <Welcome session={session} reason={null}>
        <ErrorBox error={error} onRetry={identify} />
        {error.status === 403 && <SignOutButton session={session} />}
      </Welcome>
    );
  if (!context)
    return (
      <div className="starting">
        <Logo size={32} />
        {session.settings.title}
        <Loading what={text.loadingAccount} />
      </div>
    );
  return (
    <AppContext value={context}>
      <Announcer>
        <Frame pages={PAGES} me={context.me} session={session} isSignedIn={context.isSignedIn} />
      </Announcer>
    </AppContext>
  );
}

type Known = Pick<AppValues, "me" | "kept" | "isSignedIn">;

/** With the rights of now; the same object if they did not change, and for another person, whose page loads again. */
function withMe(known: Known, me: Me): Known {
  const { expires_at: _, ...now } = me;
  const { expires_at: __, ...before } = known.me;
  return me.name !== known.me.name || JSON.stringify(now) === JSON.stringify(before)
    ? known
    : { ...known, me };
}

async function whoIs(client: Client, session: Session): Promise<Known> {
  if (session.isSignedOut) belongTo(null);
  const me = await client.get("/api/me", {});
  const isSignedIn = await session.isSignedIn();
  const kept = Kept.open(session.settings.issuer, isSignedIn ? me.name : null);
  belongTo(isSignedIn ? kept.id : null);
  return { me, kept, isSignedIn };
}
