/** The conversations that the service keeps of the person, as far as several parts of the page need them. */
import type { Client } from "./api/client";
import type { Conversation } from "./api/types";
import { Store } from "./store";

/** How often they changed: lists of them load again. */
class Changes extends Store<number> {
  constructor() {
    super(0);
  }

  note(): void {
    this.set(this.snapshot() + 1);
  }
}

export const keptConversations = new Changes();

/** The conversation that the page shows; null while it shows none. */
class Shown extends Store<string | null> {
  constructor() {
    super(null);
  }

  show(id: string | null): void {
    this.set(id);
  }
}

export const shownConversation = new Shown();

const SHARED = "shared/";

/** The part of an address that names a conversation that somebody else shared. */
export function sharedId(link: string): string {
  return `${SHARED}${link}`;
}

/** Load a conversation with all its turns; the part of its address says whose it is. */
export async function loadConversation(
  client: Client,
  id: string,
  signal?: AbortSignal,
): Promise<Conversation & { isShared: boolean }> {
  const isShared = id.startsWith(SHARED);
  const page = (token: string | null) => {
    const params = { id: isShared ? id.slice(SHARED.length) : id, next_token: token };
    return isShared
      ? client.get("/api/shared/{id}", params, signal)
      : client.get("/api/conversations/{id}", params, signal);
  };
  let found = await page(null);
  for (let token = found.next_token; token; ) {
    const before = await page(token);
    found = { ...found, turns: [...before.turns, ...found.turns] };
    token = before.next_token;
  }
  return { ...found, isShared };
}

/** Today, the last seven days, or older. */
export function ageOf(updated: string, now = new Date()): "today" | "week" | "older" {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const at = Date.parse(updated);
  if (at >= midnight) return "today";
  return at >= midnight - 6 * 86_400_000 ? "week" : "older";
}
