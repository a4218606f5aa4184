/** What people see while there is nothing else to see. */

import type { ReactNode } from "react";
import { useContext, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import type { Note } from "../api/types";
import { AppContext, type Loaded } from "../context";
import { NOT_SIGNED_IN } from "../session";
import { plain } from "./names";
import { SignInButton } from "./SignInButton";
import { Button } from "./shapes";

const SLOW_SECONDS = 4;

export function Loading({ what }: { what: string }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_SECONDS * 1000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p className="state loading" role="status">
      <span className="spinner" aria-hidden="true" /> Loading {what} …
      {isSlow && " This takes longer than usual."}
    </p>
  );
}

export function ErrorBox({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const known = error instanceof ApiError ? error : null;
  const session = useContext(AppContext)?.session;
  const isUnknown = known?.status === 401;
  const title = known?.isOffline
    ? "No connection"
    : isUnknown
      ? known?.code === NOT_SIGNED_IN
        ? "Sign in"
        : "Sign in again"
      : known?.status === 403
        ? "You may not do this"
        : known?.status === 429
          ? "Too many requests"
          : "This did not work";
  return (
    <section className="box error" role="alert">
      <h2>{title}</h2>
      <p>
        {sentence(error.message)}
        {isUnknown && " What you wrote is kept for you."}
      </p>
      {known?.status === 429 && <p>{waitText(known.waitSeconds)}</p>}
      {known?.requestId && (
        <p className="small">
          Request <code>{known.requestId}</code>
        </p>
      )}
      {isUnknown && session ? (
        <SignInButton session={session} isPrimary />
      ) : (
        onRetry && <Button onClick={onRetry}>Try again</Button>
      )}
    </section>
  );
}

interface AwaitProps {
  of: Loaded<unknown>;
  what: string;
}

/** Why something that is loaded is not here yet. */
export function Await({ of: { error, reload }, what }: AwaitProps) {
  return error ? <ErrorBox error={error} onRetry={reload} /> : <Loading what={what} />;
}

function waitText(seconds: number | null): string {
  if (seconds === null) return "Wait a moment, then try again.";
  return `Wait ${seconds} ${seconds === 1 ? "second" : "seconds"}, then try again.`;
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section className="state empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Every remark of the API about a search or an answer. */
export function Notes({ notes }: { notes: readonly Note[] | undefined }) {
  return notes?.map(({ kind, text }) => <Notice key={`${kind} ${text}`}>{sentence(plain(text))}</Notice>);
}

/** A text of the API as a sentence: it writes them without a full stop. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

export function Notice({ kind = "info", children }: { kind?: "info" | "warning"; children: ReactNode }) {
  return <p className={`box ${kind}`}>{children}</p>;
}
