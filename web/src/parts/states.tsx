/** What people see while there is nothing else to see. */

import type { ReactNode } from "react";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";
import type { Note } from "../api/types";
import { AppContext, type Loaded } from "../context";
import { useMessages } from "../messages";
import { NOT_SIGNED_IN } from "../session";
import { Icon, type IconName } from "./Icon";
import { plain } from "./names";
import { SignInButton } from "./SignInButton";
import { Button, Skeleton } from "./shapes";

const SLOW_SECONDS = 4;

/** The code of a refusal that names whom to ask. */
const ACCESS_NEEDED = "AccessNeeded";

export function Loading({ what }: { what: string }) {
  const text = useMessages("parts");
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_SECONDS * 1000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p className="state loading" role="status">
      <span className="spinner" aria-hidden="true" /> {text.loading(what)}
      {isSlow && ` ${text.slow}`}
    </p>
  );
}

export function ErrorBox({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const text = useMessages("parts");
  const known = error instanceof ApiError ? error : null;
  const session = useContext(AppContext)?.session;
  const isUnknown = known?.status === 401;
  const again = useRef<HTMLButtonElement>(null);
  // When what failed is here, the button that was pressed is gone.
  useLayoutEffect(
    () => () => {
      const isFocused = again.current !== null && again.current === document.activeElement;
      if (isFocused) document.getElementById("main")?.focus();
    },
    [],
  );
  const contact =
    known?.code === ACCESS_NEEDED ? /[^\s@]+@[^\s@]+\.[^\s@.,]+/.exec(known.message)?.[0] : null;
  const title = known?.isOffline
    ? text.noConnection
    : isUnknown
      ? known?.code === NOT_SIGNED_IN
        ? text.signIn
        : text.signInAgain
      : known?.code === ACCESS_NEEDED
        ? text.accessNeeded
        : known?.status === 403
          ? text.forbidden
          : known?.status === 429
            ? text.tooMany
            : text.failed;
  return (
    <section className="box error" role="alert">
      <h2>{title}</h2>
      <p>
        {sentence(error.message)}
        {isUnknown && ` ${text.writtenIsKept}`}
      </p>
      {known?.status === 429 && (
        <p>{known.waitSeconds === null ? text.wait : text.waitSeconds(known.waitSeconds)}</p>
      )}
      {known?.requestId && (
        <p className="small">
          {text.request} <code>{known.requestId}</code>
        </p>
      )}
      {isUnknown && session ? (
        <SignInButton session={session} isPrimary />
      ) : contact ? (
        <a
          className="button primary"
          href={`mailto:${contact}?${mail({ subject: text.accessSubject, body: location.href })}`}
        >
          {text.requestAccess}
        </a>
      ) : (
        onRetry && (
          <Button ref={again} onClick={onRetry}>
            {text.tryAgain}
          </Button>
        )
      )}
    </section>
  );
}

/** Fields of a mail as an address has them: with %20, because mail programs show a plus sign. */
function mail(fields: Record<string, string>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
}

interface AwaitProps {
  of: Pick<Loaded<unknown>, "error" | "reload">;
  what: string;
  /** How many lines stand for what loads. */
  lines?: number;
}

/** Why something that is loaded is not here yet. */
export function Await({ of: { error, reload }, what, lines }: AwaitProps) {
  if (error) return <ErrorBox error={error} onRetry={reload} />;
  return (
    <>
      <Loading what={what} />
      {lines && <Skeleton lines={lines} />}
    </>
  );
}

interface Step {
  title: string;
  /** What to do, such as a link. */
  body: ReactNode;
  isDone?: boolean;
}

interface EmptyProps {
  title: string;
  icon?: IconName;
  /** What to do first, second and third. */
  steps?: readonly Step[];
  children?: ReactNode;
}

/** There is nothing yet, and what to do about it. */
export function Empty({ title, icon, steps, children }: EmptyProps) {
  return (
    <section className="state empty">
      {icon && <Icon name={icon} size={28} />}
      <h2>{title}</h2>
      {children}
      {steps && (
        <ol className="steps">
          {steps.map(({ title, body, isDone }, index) => (
            <li key={title} className={isDone ? "done" : ""}>
              <span className="step" aria-hidden="true">
                {isDone ? <Icon name="check" size={14} /> : index + 1}
              </span>
              <div>
                <h3>{title}</h3>
                {body}
              </div>
            </li>
          ))}
        </ol>
      )}
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
