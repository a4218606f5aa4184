import { readdirSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL(".", import.meta.url);
const sheets = readdirSync(folder).filter((name) => name.endsWith(".css"));
const read = (file: string) => readFileSync(new URL(file, folder), "utf8");

const EVERYWHERE = ["base.css", "parts.css", "frame.css"];

test("no two style sheets of pages style the same class: they stay after the page is left", () => {
  const owners = new Map<string, string>();
  const shared: string[] = [];
  const beginnings = sheets.flatMap((file) =>
    [...read(file).matchAll(/^\s*[a-z]*\.([\w-]+)([^,{\n]*)[,{]$/gm)].map(
      ([, name = "", rest = ""]) => [file, name, rest.trim()] as const,
    ),
  );
  for (const [file, name, rest] of beginnings)
    if (!rest) {
      const owner = owners.get(name);
      if (owner !== undefined && owner !== file) shared.push(`.${name}: ${owner}, ${file}`);
      owners.set(name, file);
    }
  for (const [file, name] of beginnings) {
    const owner = owners.get(name) ?? file;
    if (owner !== file && !EVERYWHERE.includes(owner)) shared.push(`.${name}: ${owner}, ${file}`);
  }

  expect(shared).toEqual([]);
});

test("every colour is in the tokens", () => {
  const elsewhere = sheets
    .filter((file) => file !== "tokens.css")
    .flatMap((file) => read(file).match(/^.*(#[0-9a-f]{3,8}\b|rgb\(|hsl\(|oklch\().*$/gm) ?? []);

  expect(elsewhere).toEqual([]);
});

test("the font takes at most 60 kB", () => {
  const fonts = readdirSync(new URL("fonts/", folder)).map((name) => new URL(`fonts/${name}`, folder));

  expect(fonts.reduce((sum, file) => sum + statSync(file).size, 0)).toBeLessThanOrEqual(60_000);
});

const GROUNDS = ["ground", "sidebar", "surface", "raised"];
const TEXTS = ["text", "dim", "accent", "good", "warn", "bad"];
const PAIRS: [text: string, ground: string, contrast: number][] = [
  ...TEXTS.flatMap((text) => GROUNDS.map((ground): [string, string, number] => [text, ground, 4.5])),
  ...["accent", "good", "warn", "bad"].flatMap((name): [string, string, number][] => [
    [name, `${name}-soft`, 4.5],
    ["text", `${name}-soft`, 4.5],
  ]),
  ["on-accent", "accent", 4.5],
  ["text", "mark", 4.5],
  ...["ground", "surface"].map((ground): [string, string, number] => ["control", ground, 3]),
];

test.each(["light", "dark"])("every text can be read on every ground: %s", (scheme) => {
  const tokens = new Map<string, string>();
  for (const [, name = "", light = "", dark = ""] of read("tokens.css").matchAll(
    /--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g,
  ))
    tokens.set(name, scheme === "light" ? light : dark);

  const low = PAIRS.filter(
    ([text, ground, least]) => contrast(tokens.get(text) ?? "", tokens.get(ground) ?? "") < least,
  );

  expect(low).toEqual([]);
});

/** Source: WCAG 2.2, contrast ratio. A colour that is not there has none. */
function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
