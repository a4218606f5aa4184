/** What is to be said of a question that has no answer yet, or will have none. */

import { count } from "../../format";
import { Button } from "../../parts/shapes";
import { ErrorBox, Notice } from "../../parts/states";
import type { Asking } from "./conversation";

export function isRunning({ status }: Asking): boolean {
  return status === "searching" || status === "answering";
}

export function Progress({ asking, onRetry }: { asking: Asking; onRetry: () => void }) {
  const { status, error, text, found } = asking;
  if (status === "failed" && error) return <ErrorBox error={error} onRetry={onRetry} />;
  if (status === "stopped")
    return <Notice>You stopped this answer. The text above was not verified as a whole.</Notice>;
  if (status === "unasked")
    return (
      <Notice>
        You came back to a question that was not answered. <Button onClick={onRetry}>Ask it again</Button>
      </Notice>
    );
  if (text !== "" || !isRunning(asking)) return null;
  return (
    <p className="answer small">
      <span className="spinner" aria-hidden="true" />{" "}
      {status === "searching"
        ? "Searching the documents …"
        : `Reading ${count(found?.sources.length ?? 0, "passage")} …`}
    </p>
  );
}
