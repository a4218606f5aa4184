/** The pages, and who uses them. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { ApiError, type Client } from "./api/client";
import { AppContext } from "./context";
import { SignOutButton } from "./frame/Account";
import { Frame, type PageEntry } from "./frame/Frame";
import { type Known, whoIs, withMe } from "./identity";
import { useMessages } from "./messages";
import { LOADERS } from "./pages";
import { Announcer } from "./parts/Announcer";
import { Logo } from "./parts/Icon";
import { later } from "./parts/later";
import { ErrorBox, Loading } from "./parts/states";
import { Welcome } from "./parts/Welcome";
import { parsePlace } from "./route";
import { NOT_SIGNED_IN, type Session } from "./session";

const PAGES: readonly PageEntry[] = [
  { name: "ask", icon: "ask", right: "read", Page: later(LOADERS.ask) },
  { name: "documents", icon: "documents", right: "read", Page: later(LOADERS.documents) },
  { name: "search", icon: "search", right: "read", Page: later(LOADERS.search) },
  { name: "quality", icon: "quality", right: "read", Page: later(LOADERS.quality) },
  { name: "admin", icon: "admin", right: "operate", Page: later(LOADERS.admin) },
];

/** Load the page of the address. */
export async function loadFirst(): Promise<void> {
  await PAGES.find(({ name }) => name === parsePlace(location.hash).page)?.Page.load();
}

interface Props {
  session: Session;
  client: Client;
  /** Who uses the page, which was asked before the page could be shown. */
  first: Promise<Known>;
}

export function App({ session, client, first }: Props) {
  const text = useMessages("frame");
  const [known, setKnown] = useState<Known | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const show = useCallback((answer: Promise<Known>) => {
    setError(null);
    answer.then(setKnown, (reason: unknown) => setError(ApiError.of(reason)));
  }, []);
  const identify = useCallback(() => show(whoIs(client, session)), [show, client, session]);
  useEffect(() => show(first), [show, first]);
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
