/** Calls that the interface does not have are type errors: `npm run lint` checks this file, and nothing runs it. */
import type { Client } from "./client";

export const wrong = (client: Client) => [
  // @ts-expect-error: no such path
  () => client.get("/api/document", {}),
  // @ts-expect-error: the path has no such method
  () => client.put("/api/retrieve", {}, { query: "x" }),
  // @ts-expect-error: the id is missing
  () => client.get("/api/documents/{id}", {}),
  // @ts-expect-error: no such parameter
  () => client.get("/api/documents", { title: "x" }),
  // @ts-expect-error: no such status
  () => client.get("/api/documents", { status: "LOST" }),
  // @ts-expect-error: a misspelt member
  () => client.post("/api/retrieve", { query: "x", topk: 1 }),
  // @ts-expect-error: no such member in the response
  async () => (await client.get("/api/corpora", {})).names,
];
