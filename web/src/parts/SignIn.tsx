import { useState } from "react";
import type { Session } from "../session";
import { ErrorBox, Notice } from "./states";

interface Props {
  session: Session;
  /** Why somebody who was signed in has to sign in again. */
  reason: string | null;
}

export function SignIn({ session, reason }: Props) {
  const [error, setError] = useState<Error | null>(null);
  const [key, setKey] = useState("");
  const withKey = session.settings.auth === "api_key";
  return (
    <main className="sign-in">
      <h1>{session.settings.title}</h1>
      <p>Search and ask questions about your documents. You see what you have access to.</p>
      {reason && <Notice>{reason}</Notice>}
      {withKey ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            session.setApiKey(key);
          }}
        >
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
          <button type="submit" className="primary">
            Use this key
          </button>
        </form>
      ) : (
        <button type="button" className="primary" onClick={() => session.signIn().catch(setError)}>
          Sign in
        </button>
      )}
      {session.settings.anonymous && (
        <button type="button" onClick={() => void session.continueSignedOut()}>
          Continue without signing in
        </button>
      )}
      {error && <ErrorBox error={new Error(`The sign-in page cannot be reached: ${error.message}`)} />}
    </main>
  );
}
