import { User } from "oidc-client-ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { manager } from "./issuer";
import { type ConsoleSettings, Session } from "./session";
import { MemoryStorage } from "./testing";

const ISSUER = "https://issuer.test";
const HOME = "https://console.test/";
const SETTINGS: ConsoleSettings = {
  auth: "oidc",
  anonymous: false,
  issuer: ISSUER,
  client_id: "console",
  audiences: ["api"],
  scope: null,
  sign_out_url: null,
  title: "RAGStack",
  questions: [],
};

let tab: MemoryStorage;
const location = { href: HOME, search: "", hash: "", pathname: "/", reload: vi.fn(), assign: vi.fn() };

beforeEach(() => {
  vi.useFakeTimers();
  tab = new MemoryStorage();
  vi.stubGlobal("sessionStorage", tab);
  vi.stubGlobal("location", location);
  vi.stubGlobal("history", { state: null, replaceState: vi.fn() });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.clearAllMocks();
});

/** A session whose issuer does not answer. */
async function opened(settings: Partial<ConsoleSettings> = {}): Promise<Session> {
  vi.stubGlobal("fetch", (address: string | URL) =>
    String(address).endsWith("console.json")
      ? Promise.resolve(Response.json({ ...SETTINGS, ...settings }))
      : new Promise(() => undefined),
  );
  return await Session.open();
}

/** Leave in the tab what a sign-in leaves there. */
function signIn(claims: object, issuer = ISSUER): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString("base64url");
  const token = `e30.${payload}.signature`;
  const user = { access_token: token, token_type: "Bearer", profile: {} };
  tab.setItem(`oidc.user:${issuer}:console`, JSON.stringify(user));
  return token;
}

test("an issuer that does not answer keeps nobody signed in", async () => {
  signIn({ aud: "api", sub: "alice" });
  tab.setItem("ragstack.kept.alice.ask.draft", "secret");
  const session = await opened();

  const leaving = session.signOut(() => new Promise(() => undefined));
  await vi.advanceTimersByTimeAsync(0);

  expect(tab.text).not.toMatch(/oidc|secret/);
  await vi.advanceTimersByTimeAsync(3000);
  await leaving;
  expect(location.reload).toHaveBeenCalledOnce();
  expect(session.isSignedOut).toBe(true);
});

test("what is done last is done as the person who signs out", async () => {
  const token = signIn({ aud: "api", sub: "alice" });
  const session = await opened({ sign_out_url: "https://issuer.test/logout" });
  const proofs: object[] = [];

  await session.signOut(async () => {
    proofs.push(await session.headers());
    throw new Error("It failed");
  });

  expect(proofs).toEqual([{ Authorization: `Bearer ${token}` }]);
  expect(location.assign.mock.lastCall?.[0]).toContain("https://issuer.test/logout?");
  expect(tab.text).not.toContain("oidc");
});

test("signing out ends the session at Amazon Cognito, which has its own parameters", async () => {
  const issuer = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aBc";
  const page = "https://ragstack-1.auth.eu-west-1.amazoncognito.com/logout";
  signIn({ aud: "api", sub: "alice" }, issuer);
  const session = await opened({ issuer, sign_out_url: page });

  await session.signOut();

  const address = new URL(String(location.assign.mock.lastCall?.[0]));
  expect(address.origin + address.pathname).toBe(page);
  expect(Object.fromEntries(address.searchParams)).toEqual({ client_id: "console", logout_uri: HOME });
});

test("a token for another audience does not keep somebody signed in", async () => {
  signIn({ aud: "another", sub: "alice" });
  const session = await opened({ sign_out_url: "https://issuer.test/logout" });
  await expect(session.headers()).rejects.toMatchObject({ code: "NoTokenForTheApi" });

  await session.signOut();

  expect(tab.text).not.toContain("oidc");
  expect(location.assign).toHaveBeenCalledOnce();
});

test("the key of an API is forgotten before the last requests are answered", async () => {
  tab.setItem("ragstack.api-key", "secret");
  const session = await opened({ auth: "api_key", issuer: null });
  const proofs: object[] = [];

  await session.signOut(async () => {
    proofs.push(await session.headers());
    expect(tab.text).not.toContain("secret");
  });

  expect(proofs).toEqual([{ "x-api-key": "secret" }]);
  expect(location.reload).toHaveBeenCalledOnce();
});

test("only a session that expired is said to have expired", async () => {
  const session = await opened();
  await expect(session.headers()).rejects.toMatchObject({ code: "NotSignedIn" });

  signIn({ aud: "api", sub: "alice", exp: 1 });

  await expect(session.headers()).rejects.toMatchObject({ code: "SessionExpired" });
});

test("the tokens that the issuer's library keeps prove who sends a request, without the library", async () => {
  const token = signIn({ aud: "api", sub: "alice" });
  tab.clear();
  const session = await opened();
  expect(session.isSignedIn).toBe(false);
  const profile = { sub: "alice", iss: ISSUER, aud: "console", exp: 4_000_000_000, iat: 1 };

  await manager(SETTINGS, HOME).storeUser(new User({ access_token: token, token_type: "Bearer", profile }));

  expect(session.isSignedIn).toBe(true);
  expect(await session.headers()).toEqual({ Authorization: `Bearer ${token}` });
});
