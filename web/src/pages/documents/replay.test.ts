import { expect, it, vi } from "vitest";
import { replay } from "./replay";

interface Body {
  documents: string[];
  next_token: string | null;
}

it("names no more documents in a request than the service allows, and goes on until all are sent", async () => {
  const uris = Array.from({ length: 1500 }, (_, number) => `s3://b/${number}.txt`);
  const post = vi.fn(async (_path: string, { documents, next_token }: Body) => ({
    documents: next_token ? [] : documents,
    next_token: documents.length === 1000 && next_token === null ? "on" : null,
  }));

  const sent = await replay({ post } as unknown as Parameters<typeof replay>[0], uris);

  expect(post.mock.calls.map(([, { documents, next_token }]) => [documents.length, next_token])).toEqual([
    [1000, null],
    [1000, "on"],
    [500, null],
  ]);
  expect(sent).toBe(1500);
});
