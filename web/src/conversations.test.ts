import { expect, test } from "vitest";
import type { Client } from "./api/client";
import { ageOf, loadConversation, sharedId } from "./conversations";

test("conversations are of today, of the last seven days, or older", () => {
  const now = new Date(2026, 10, 28, 9);
  const at = (days: number, hour: number) => new Date(2026, 10, 28 - days, hour).toISOString();

  expect([at(0, 0), at(1, 23), at(6, 1), at(7, 23)].map((each) => ageOf(each, now))).toEqual([
    "today",
    "week",
    "week",
    "older",
  ]);
});

test("all turns of a long conversation are loaded, oldest first, from the place that its address names", async () => {
  const asked: unknown[] = [];
  const client = {
    get: async (path: string, params: { next_token: string | null }) => {
      asked.push([path, params]);
      return params.next_token
        ? { turns: [{ entry: "1" }], next_token: null }
        : { turns: [{ entry: "2" }], next_token: "before" };
    },
  } as unknown as Client;

  const found = await loadConversation(client, sharedId("link"));

  expect(found.turns.map((turn) => turn.entry)).toEqual(["1", "2"]);
  expect(asked).toEqual([
    ["/api/shared/{id}", { id: "link", next_token: null }],
    ["/api/shared/{id}", { id: "link", next_token: "before" }],
  ]);
});
