/** What is to be said of a question that has no answer yet, or will have none. */

import { useEffect, useState } from "react";
import { useMessages } from "../../messages";
import { Button, Skeleton } from "../../parts/shapes";
import { ErrorBox, Notice } from "../../parts/states";
import type { Asking } from "./conversation";

const STALL_SECONDS = 10;

export function isRunning({ status }: Asking): boolean {
  return status === "searching" || status === "answering";
}

export function Progress({ asking, onRetry }: { asking: Asking; onRetry: () => void }) {
  const messages = useMessages("ask");
  const isStalled = useStalled(asking);
  const { status, error, text, found } = asking;
  if (status === "failed" && error) return <ErrorBox error={error} onRetry={onRetry} />;
  if (status === "stopped") return <Notice>{text ? messages.youStopped : messages.youStoppedEarly}</Notice>;
  if (status === "unasked")
    return (
      <Notice>
        {messages.cameBack} <Button onClick={onRetry}>{messages.askItAgain}</Button>
      </Notice>
    );
  if (!isRunning(asking)) return null;
  return (
    <>
      {text === "" && (
        <div className="progress">
          <p className="small">
            <span className="spinner" aria-hidden="true" />{" "}
            {status === "searching" ? messages.searching : messages.reading(found?.sources.length ?? 0)}
          </p>
          <Skeleton lines={3} />
        </div>
      )}
      {isStalled && (
        <p className="box warning" role="status">
          {messages.stalled}
        </p>
      )}
    </>
  );
}

/** Whether a running question has got nothing for a while. */
function useStalled(asking: Asking): boolean {
  const [stalled, setStalled] = useState<Asking | null>(null);
  useEffect(() => {
    if (!isRunning(asking)) return;
    const timer = setTimeout(() => setStalled(asking), STALL_SECONDS * 1000);
    return () => clearTimeout(timer);
  }, [asking]);
  return stalled === asking;
}
