/** Server-sent events of /api/ask/stream. */

import { ApiError, type Client } from "./client";
import type { components } from "./schema";
import type { AskRequest, AskResponse, SourcesEvent } from "./types";

export type AskEvent =
  | { name: "sources"; data: SourcesEvent }
  | { name: "token"; data: components["schemas"]["TokenEvent"] }
  | { name: "citation"; data: components["schemas"]["CitationEvent"] }
  | { name: "support"; data: components["schemas"]["SupportEvent"] }
  | { name: "done"; data: AskResponse };

/** Ask, and yield each event as it arrives. Ends after "done"; throws ApiError if the stream fails or breaks off. */
export async function* askStream(
  client: Client,
  request: AskRequest,
  signal: AbortSignal,
): AsyncGenerator<AskEvent> {
  const response = await client.open("/api/ask/stream", request, signal);
  if (!response.body) throw new ApiError("The answer has no body", response.status, "Unknown");
  for await (const { name, data } of events(response.body)) {
    if (name === "error") {
      const { error } = JSON.parse(data) as components["schemas"]["ErrorEvent"];
      throw ApiError.described(error, response.status);
    }
    yield { name, data: JSON.parse(data) } as AskEvent;
    if (name === "done") return;
  }
  throw broken();
}

function broken(): ApiError {
  return new ApiError("The connection broke before the answer was complete. Ask again.", 0, "Unreachable");
}

/** Split a stream into its events; lines that begin with a colon are heartbeats. */
export async function* events(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ name: string; data: string }> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => {
        throw broken();
      });
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split(/\r?\n/);
        const fields = (field: string) =>
          lines
            .filter((line) => line.startsWith(`${field}:`))
            .map((line) => line.slice(field.length + 1).replace(/^ /, ""));
        const data = fields("data");
        if (data.length > 0) yield { name: fields("event")[0] ?? "message", data: data.join("\n") };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
