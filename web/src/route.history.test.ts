import { afterEach, beforeEach, expect, test, vi } from "vitest";

/** As much of a browser's history as the console uses. */
class Browser extends EventTarget {
  entries: { state: unknown; hash: string }[] = [{ state: null, hash: "" }];
  at = 0;

  get state() {
    return this.entries[this.at]?.state ?? null;
  }
  get hash() {
    return this.entries[this.at]?.hash ?? "";
  }
  replaceState(state: unknown, _: string, hash = this.hash) {
    this.entries[this.at] = { state, hash };
  }
  pushState(state: unknown, _: string, hash: string) {
    this.entries = [...this.entries.slice(0, this.at + 1), { state, hash }];
    this.at += 1;
  }
  move(by: number) {
    const before = this.hash;
    this.at += by;
    this.dispatchEvent(new Event("popstate"));
    if (this.hash !== before) this.dispatchEvent(new Event("hashchange"));
  }
}

let browser: Browser;
let route: typeof import("./route");

/** Load the page, as a browser does after a reload too. */
async function load() {
  vi.resetModules();
  route = await import("./route");
}

beforeEach(async () => {
  browser = new Browser();
  vi.stubGlobal("history", browser);
  vi.stubGlobal("location", browser);
  vi.stubGlobal("HashChangeEvent", Event);
  vi.stubGlobal("addEventListener", browser.addEventListener.bind(browser));
  vi.stubGlobal("dispatchEvent", browser.dispatchEvent.bind(browser));
  await load();
});
afterEach(() => vi.unstubAllGlobals());

test("people go back to what they asked, also after a reload", async () => {
  route.belongTo("alice");
  route.go("#/ask?q=secret");
  route.go("#/ask");
  await load();
  route.belongTo("alice");

  browser.move(-1);

  expect(browser.hash).toBe("#/ask?q=secret");
});

test.each(["bob", null])(
  "what another person asked is neither shown to %s nor left in the history",
  async (other) => {
    route.belongTo("alice");
    route.go("#/ask?q=secret");
    route.go("#/search?q=secret");
    await load();
    route.belongTo(other);
    expect(browser.hash).toBe("#/ask");

    browser.move(-1);

    expect(browser.hash).toBe("#/ask");
    expect(JSON.stringify(browser.entries)).not.toContain("secret");
  },
);

test("an address that was opened before signing in stays for who signs in", async () => {
  route.go("#/documents/a");
  await load();

  route.belongTo("bob");

  expect(browser.hash).toBe("#/documents/a");
  expect(browser.state).toMatchObject({ owner: "bob" });
});
