// Fails if the JavaScript that somebody who asks loads at first is larger than 80 kB, compressed: what the page names,
// and its page for questions with what that imports.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 80_000;
const folder = new URL("../ragstack_local/console/static/", import.meta.url);
const page = readFileSync(new URL("index.html", folder), "utf8");
const named = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map((match) => match[1]);
const asks = readdirSync(new URL("assets", folder)).filter((name) => /^AskPage-.*\.js$/.test(name));
const scripts = new Set([...named, ...asks.map((name) => `assets/${name}`)]);
// A set goes on with what is added to it.
for (const name of scripts) {
  const text = readFileSync(new URL(name, folder), "utf8");
  for (const [, imported] of text.matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g))
    scripts.add(`assets/${imported}`);
}
const sizes = [...scripts].map((name) => [name, gzipSync(readFileSync(new URL(name, folder))).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
for (const [name, size] of sizes) console.log(`${(size / 1000).toFixed(1)} kB  ${name}`);
console.log(`${(total / 1000).toFixed(1)} kB of initial JavaScript, gzipped; limit ${LIMIT / 1000} kB`);
if (asks.length === 0 || total > LIMIT) process.exit(1);
