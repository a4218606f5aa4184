import { useState } from "react";
import type { Session } from "../session";
import { SignInButton } from "./SignInButton";
import { Button, Form } from "./shapes";
import { Notice, sentence } from "./states";

interface Props {
  session: Session;
  /** Why somebody who was signed in has to sign in again. */
  reason: string | null;
}

export function SignIn({ session, reason }: Props) {
  const [key, setKey] = useState("");
  const withKey = session.settings.auth === "api_key";
  return (
    <main className="sign-in">
      <h1>{session.settings.title}</h1>
      <p>Search and ask questions about your documents. You see what you have access to.</p>
      {reason && <Notice>{sentence(reason)}</Notice>}
      {withKey ? (
        <Form onSubmit={() => session.setApiKey(key)}>
          <label>
            API key{" "}
            <input
              type="password"
              required
              autoComplete="off"
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          </label>
          <p className="small">It stays in this tab, and is forgotten when you close it.</p>
          <Button type="submit" kind="primary">
            Use this key
          </Button>
        </Form>
      ) : (
        <SignInButton session={session} isPrimary />
      )}
      {session.settings.anonymous && (
        <Button onClick={() => session.continueSignedOut()}>Continue without signing in</Button>
      )}
    </main>
  );
}
