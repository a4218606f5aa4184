/** What people see who cannot use the console yet: one card, with one thing to do. */
import { type ReactNode, useState } from "react";
import { useMessages } from "../messages";
import type { Session } from "../session";
import { Logo } from "./Icon";
import { SignInButton } from "./SignInButton";
import { Button, Form } from "./shapes";
import { sentence } from "./states";

interface Props {
  session: Session;
  /** Why somebody who was signed in has to sign in again. */
  reason: string | null;
  /** What there is to do, if it is not to sign in. */
  children?: ReactNode;
}

export function Welcome({ session, reason, children }: Props) {
  const text = useMessages("frame");
  return (
    <main className="welcome">
      <section className="card stack">
        <Logo size={40} />
        <h1>{session.settings.title}</h1>
        {children ?? (
          <>
            {reason && (
              <p role="status">
                <strong>{sentence(reason)}</strong>
              </p>
            )}
            <p>{text.welcome}</p>
            {session.settings.auth === "api_key" ? (
              <KeyForm session={session} />
            ) : (
              <SignInButton session={session} isPrimary />
            )}
            {session.settings.anonymous && (
              <Button onClick={() => session.continueSignedOut()}>{text.continueSignedOut}</Button>
            )}
          </>
        )}
      </section>
    </main>
  );
}

function KeyForm({ session }: { session: Session }) {
  const text = useMessages("frame");
  const [key, setKey] = useState("");
  return (
    <Form className="stack" onSubmit={() => session.setApiKey(key)}>
      <label className="field">
        {text.apiKey}
        <input
          type="password"
          required
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      </label>
      <p className="small">{text.apiKeyHint}</p>
      <Button type="submit" kind="primary">
        {text.useKey}
      </Button>
    </Form>
  );
}
