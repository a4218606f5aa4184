/** Leads to the sign-in, and says why if it cannot. */

import { useState } from "react";
import type { Session } from "../session";
import { Button } from "./shapes";

export function SignInButton({ session, isPrimary = false }: { session: Session; isPrimary?: boolean }) {
  const [error, setError] = useState<Error | null>(null);
  const signIn = () => {
    setError(null);
    session.signIn().catch(setError);
  };
  return (
    <>
      <Button kind={isPrimary ? "primary" : undefined} onClick={signIn}>
        Sign in
      </Button>
      {error && (
        <p className="box error" role="alert">
          The sign-in page cannot be reached: {error.message}
        </p>
      )}
    </>
  );
}
