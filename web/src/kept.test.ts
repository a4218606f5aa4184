import { beforeEach, expect, test } from "vitest";
import { Kept } from "./kept";
import { MemoryStorage } from "./testing";

let tab: MemoryStorage;

beforeEach(() => {
  tab = new MemoryStorage();
});

const open = (user: string | null, issuer = "https://issuer") => Kept.open(issuer, user, tab);

test("a person finds again what they left", () => {
  const before = open("user:alice");
  before.write("ask.draft", "How long");

  const again = open("user:alice");

  expect(again.read("ask.draft", "")).toBe("How long");
  expect(again.id).toBe(before.id);
});

test.each([
  ["user:alice", "user:bob"],
  ["user:alice", null],
  [null, "user:bob"],
  ["user:a", "user:a.b"],
  ["user:a.b", "user:a"],
])("what %s left is neither read nor left over for %s", (one, other) => {
  const before = open(one);
  before.write("ask.conversations", "secret");

  const kept = open(other);

  expect(kept.read("ask.conversations", "nothing")).toBe("nothing");
  expect(tab.text).not.toContain("secret");
  expect(kept.id).not.toBe(before.id);
});

test("a user of the same name at another issuer is another person", () => {
  open("user:alice", "https://one").write("ask.draft", "secret");

  expect(open("user:alice", "https://two").read("ask.draft", "")).toBe("");
  expect(tab.text).not.toContain("secret");
});

test("what is forgotten is gone, and what others keep in the storage stays", () => {
  tab.setItem("oidc.user", "token");
  open("user:alice").write("ask.draft", "secret");

  Kept.forget(tab);

  expect(tab.text).toBe('[["oidc.user","token"]]');
});

test("an answer that arrives after everything was forgotten is not kept", () => {
  const alice = open("user:alice");
  Kept.forget(tab);

  alice.write("ask.conversations", "secret");
  open("user:bob").write("ask.draft", "text");

  expect(tab.text).not.toContain("secret");
  expect(tab.text).toContain("text");
});

test("a storage that is full or broken loses what is kept, and nothing else", () => {
  const kept = open("user:alice");
  tab.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  kept.write("ask.draft", "text");
  tab.getItem = () => "{broken";

  expect(kept.read("ask.draft", "nothing")).toBe("nothing");
});
