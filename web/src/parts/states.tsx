/** What people see while there is nothing else to see. */
import type { ReactNode } from "react";
import { useEffect, useState } from "react";
import { ApiError } from "../api/client";

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
  const title = known?.isOffline
    ? "No connection"
    : known?.status === 403
      ? "You may not do this"
      : known?.status === 429
        ? "Too many requests"
        : "This did not work";
  return (
    <section className="box error" role="alert">
      <h2>{title}</h2>
      <p>{error.message}</p>
      {known?.requestId && (
        <p className="small">
          Request <code>{known.requestId}</code>
        </p>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </section>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section className="state empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "warning"; children: ReactNode }) {
  return <p className={`box ${kind}`}>{children}</p>;
}
