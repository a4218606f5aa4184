/** Leads to the sign-in, and says why if it cannot. */

import { useState } from "react";
import { useMessages } from "../messages";
import type { Session } from "../session";
import { Button } from "./shapes";

export function SignInButton({ session, isPrimary = false }: { session: Session; isPrimary?: boolean }) {
  const text = useMessages("frame");
  const [error, setError] = useState<Error | null>(null);
  const signIn = () => {
    setError(null);
    session.signIn().catch(setError);
  };
  return (
    <>
      <Button kind={isPrimary ? "primary" : undefined} onClick={signIn}>
        {text.signIn}
      </Button>
      {error && (
        <p className="box error" role="alert">
          {text.signInFailed(error.message)}
        </p>
      )}
    </>
  );
}
