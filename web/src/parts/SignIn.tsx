import { useState } from "react";
import type { Session } from "../session";
import { ErrorBox } from "./states";

export function SignIn({ session, onKey }: { session: Session; onKey: () => void }) {
  const [error, setError] = useState<Error | null>(null);
  const [key, setKey] = useState("");
  const withKey = session.settings.auth === "api_key";
  return (
    <main className="sign-in">
      <h1>{session.settings.title}</h1>
      <p>Search and ask questions about your documents. You see what you have access to.</p>
      {withKey ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            session.setApiKey(key);
            onKey();
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
      {error && <ErrorBox error={new Error(`The sign-in page cannot be reached: ${error.message}`)} />}
    </main>
  );
}
