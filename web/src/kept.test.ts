import { beforeEach, expect, test } from "vitest";
import { Kept, type Storages } from "./kept";

class Memory implements Storage {
  [name: string]: unknown;
  private readonly items = new Map<string, string>();
  get length() {
    return this.items.size;
  }
  clear = () => this.items.clear();
  getItem = (key: string) => this.items.get(key) ?? null;
  key = (index: number) => [...this.items.keys()][index] ?? null;
  removeItem = (key: string) => void this.items.delete(key);
  setItem = (key: string, value: string) => void this.items.set(key, value);
  get text() {
    return JSON.stringify([...this.items]);
  }
}

let tab: Memory;
let browser: Memory;
let storages: Storages;

beforeEach(() => {
  tab = new Memory();
  browser = new Memory();
  storages = { tab, browser };
});

const open = (user: string | null, issuer = "https://issuer") => Kept.open(issuer, user, storages);

test("a person finds again what they left", () => {
  open("user:alice").write("ask.draft", "How long");

  const again = open("user:alice");

  expect(again.read("ask.draft", "")).toBe("How long");
  expect(again.isAnother).toBe(false);
});

test.each([
  ["user:alice", "user:bob"],
  ["user:alice", null],
  [null, "user:bob"],
  ["user:a", "user:a.b"],
  ["user:a.b", "user:a"],
])("what %s left is neither read nor left over for %s", (one, other) => {
  open(one).write("ask.conversations", "secret");
  open(one).write("keys", "secret", "browser");

  const kept = open(other);

  expect(kept.read("ask.conversations", "nothing")).toBe("nothing");
  expect(kept.read("keys", "nothing", "browser")).toBe("nothing");
  expect(tab.text + browser.text).not.toContain("secret");
  expect(kept.isAnother).toBe(one !== null);
});

test("a user of the same name at another issuer is another person", () => {
  open("user:alice", "https://one").write("ask.draft", "secret");

  expect(open("user:alice", "https://two").read("ask.draft", "")).toBe("");
  expect(tab.text).not.toContain("secret");
});

test("what is forgotten is gone, and what others keep in the storage stays", () => {
  tab.setItem("oidc.user", "token");
  open("user:alice").write("ask.draft", "secret");

  Kept.forget(storages);

  expect(tab.text).toBe('[["oidc.user","token"]]');
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
