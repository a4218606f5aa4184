import { afterEach, expect, test, vi } from "vitest";
import type { Session } from "../session";
import { ApiError, Client } from "./client";

afterEach(() => vi.unstubAllGlobals());

const session = { headers: async () => ({}), end: vi.fn() };
const client = new Client(session as unknown as Session);

function answer(body: string, init: ResponseInit) {
  vi.stubGlobal("fetch", async () => new Response(body, init));
}

test("an error says once what is wrong, with the request and the time to wait", async () => {
  const details = [
    { member: "top_k", problem: "too large" },
    { member: "rerank", problem: "unknown" },
  ];
  const message = "top_k: too large; rerank: unknown";
  const error = { code: "InvalidRequest", message, details, requestId: "r-1" };
  answer(JSON.stringify({ error }), { status: 429, headers: { "retry-after": "3" } });

  await expect(client.get("/api/me", {})).rejects.toMatchObject({
    message,
    code: "InvalidRequest",
    status: 429,
    requestId: "r-1",
    waitSeconds: 3,
  });
});

test("an error without the API's body has the status", async () => {
  answer("<html>Bad gateway</html>", { status: 502 });

  await expect(client.get("/api/me", {})).rejects.toMatchObject({ status: 502, code: "Unknown" });
});

test("the session ends with what the API says of a proof that it refuses", async () => {
  const error = { code: "NotAuthenticated", message: "The token is for another audience", details: [] };
  answer(JSON.stringify({ error }), { status: 401 });

  await expect(client.get("/api/me", {})).rejects.toThrow("another audience");

  expect(session.end.mock.lastCall?.[0]).toMatchObject({ message: "The token is for another audience" });
});

test("parameters fill the path first, and those without a value are left out", async () => {
  const sent = vi.fn(async (_url: string, _init: RequestInit) => new Response("{}"));
  vi.stubGlobal("fetch", sent);

  await client.get("/api/documents", { name: "a&b", limit: 5, status: null, prefix: "" });
  await client.patch("/api/documents/{id}", { id: "a/b" }, { attributes: {} });
  await client.delete("/api/documents/{id}", { id: "c" });

  expect(sent.mock.calls.map(([url, { method, body }]) => [method, url, body])).toEqual([
    ["GET", "./api/documents?name=a%26b&limit=5", undefined],
    ["PATCH", "./api/documents/a%2Fb", '{"attributes":{}}'],
    ["DELETE", "./api/documents/c", undefined],
  ]);
});

test("a fault of the console is not a lost connection", () => {
  const known = new ApiError("You are offline.", 0, "Unreachable");

  expect(ApiError.of(known)).toBe(known);
  expect(ApiError.of(known).isOffline).toBe(true);
  expect(ApiError.of(new TypeError("x is undefined"))).toMatchObject({
    message: "TypeError: x is undefined",
    isOffline: false,
  });
});
