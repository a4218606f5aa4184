/** Leads to the sign-in, and says why if it cannot. */
import { useState } from "react";
import type { Session } from "../session";

export function SignInButton({ session, isPrimary = false }: { session: Session; isPrimary?: boolean }) {
  const [error, setError] = useState<Error | null>(null);
  const signIn = () => {
    setError(null);
    session.signIn().catch(setError);
  };
  return (
    <>
      <button type="button" className={isPrimary ? "primary" : undefined} onClick={signIn}>
        Sign in
      </button>
      {error && (
        <p className="box error" role="alert">
          The sign-in page cannot be reached: {error.message}
        </p>
      )}
    </>
  );
}
