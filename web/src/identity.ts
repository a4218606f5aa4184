/** Who uses the page: asked before anything else, because what a page shows depends on it. */
import type { Client } from "./api/client";
import type { Me } from "./api/types";
import { Kept } from "./kept";
import { belongTo } from "./route";
import type { Session } from "./session";

export interface Known {
  me: Me;
  kept: Kept;
  /** Whether somebody has signed in. */
  isSignedIn: boolean;
}

/** With the rights of now; the same object if they did not change, and for another person, whose page loads again. */
export function withMe(known: Known, me: Me): Known {
  const { expires_at: _, ...now } = me;
  const { expires_at: __, ...before } = known.me;
  return me.name !== known.me.name || JSON.stringify(now) === JSON.stringify(before)
    ? known
    : { ...known, me };
}

/** Ask the API, and open what it keeps here for them. */
export async function whoIs(client: Client, session: Session): Promise<Known> {
  if (session.isSignedOut) belongTo(null);
  const me = await client.get("/api/me", {});
  const { isSignedIn } = session;
  const kept = Kept.open(session.settings.issuer, isSignedIn ? me.name : null);
  belongTo(isSignedIn ? kept.id : null);
  return { me, kept, isSignedIn };
}
