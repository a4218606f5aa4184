/** Has documents read and indexed again. */
import type { Client } from "../../api/client";
import type { components } from "../../api/schema";

type Answer = components["schemas"]["ReplayAnswer"];

/** What one request may name. */
const NAMES = 1000;

/** Returns how many documents are processed again. */
export async function replay(client: Pick<Client, "post">, uris: readonly string[]): Promise<number> {
  let sent = 0;
  for (let from = 0; from < uris.length; from += NAMES) {
    const documents = uris.slice(from, from + NAMES);
    let token: string | null = null;
    do {
      const answer: Answer = await client.post("/api/failures/replay", { documents, next_token: token });
      sent += answer.documents.length;
      token = answer.next_token ?? null;
    } while (token !== null);
  }
  return sent;
}
