import { expect, test } from "vitest";
import { events } from "./stream";

function body(...chunks: string[]): ReadableStream<Uint8Array> {
  const bytes = chunks.map((chunk) => new TextEncoder().encode(chunk));
  return new ReadableStream({
    start(controller) {
      for (const chunk of bytes) controller.enqueue(chunk);
      controller.close();
    },
  });
}

async function all(...chunks: string[]) {
  const found = [];
  for await (const event of events(body(...chunks))) found.push(event);
  return found;
}

test("events may be split anywhere", async () => {
  const text = 'event: token\ndata: {"text": "ä"}\n\n: heartbeat\n\nevent: done\r\ndata: {}\r\n\r\n';
  const whole = [
    { name: "token", data: '{"text": "ä"}' },
    { name: "done", data: "{}" },
  ];
  expect(await all(text)).toEqual(whole);
  expect(await all(...text)).toEqual(whole);
});

test("an event without its empty line is not complete", async () => {
  expect(await all("event: token\ndata: {}\n")).toEqual([]);
});
