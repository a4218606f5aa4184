import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL(".", import.meta.url);

test("no two style sheets style the same class: those of pages stay after the page is left", () => {
  const places = new Map<string, Set<string>>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".css"))) {
    const rules = readFileSync(new URL(file, folder), "utf8");
    for (const [, name = ""] of rules.matchAll(/^\s*\.([\w-]+)(?: \{|,)$/gm))
      places.set(name, (places.get(name) ?? new Set()).add(file));
  }

  const shared = [...places].filter(([, files]) => files.size > 1).map(([name]) => name);

  expect(shared).toEqual([]);
});
