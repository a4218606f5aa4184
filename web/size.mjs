// Fails if the JavaScript that the page loads at first is larger than 150 kB, compressed.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 150_000;
const folder = new URL("../ragstack_local/console/static/", import.meta.url);
const page = readFileSync(new URL("index.html", folder), "utf8");
const scripts = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map((match) => match[1]);
const sizes = scripts.map((name) => [name, gzipSync(readFileSync(new URL(name, folder))).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
for (const [name, size] of sizes) console.log(`${(size / 1000).toFixed(1)} kB  ${name}`);
console.log(`${(total / 1000).toFixed(1)} kB of initial JavaScript, gzipped; limit ${LIMIT / 1000} kB`);
if (total === 0 || total > LIMIT) process.exit(1);
