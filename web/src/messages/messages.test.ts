import { globSync, readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";
import { MemoryStorage } from "../testing";
import { chooseLanguage, languageOf, localeOf, messages } from ".";
import { de } from "./de";
import { en } from "./en";
import { wordsIn } from "./words";

const source = new URL("..", import.meta.url);

const components = globSync("**/*.tsx", { cwd: source }).filter((name) => !name.endsWith(".test.tsx"));

test("components have no texts of their own", () => {
  const found = components.flatMap((name) => textsIn(name).map((text) => `${name}: ${text}`));

  expect(found).toEqual([]);
});

const READ = ["aria-label", "aria-description", "title", "placeholder", "label", "legend", "alt", "what"];

/** What people would read that is written in a component: between tags, and in attributes with names. */
function textsIn(name: string): string[] {
  const file = ts.createSourceFile(
    name,
    readFileSync(new URL(name, source), "utf8"),
    ts.ScriptTarget.Latest,
    true,
  );
  const found: string[] = [];
  const note = (text: string) => {
    if (/\p{L}{2}/u.test(text)) found.push(text.trim());
  };
  /** The texts that an expression can have as its value. */
  const noteValues = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) note(node.text);
    else if (ts.isTemplateExpression(node))
      note([node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join(" "));
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(noteValues);
    else if (ts.isBinaryExpression(node)) noteValues(node.right);
    else if (ts.isParenthesizedExpression(node)) noteValues(node.expression);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) note(node.text);
    else if (ts.isJsxExpression(node) && node.expression && !ts.isJsxAttribute(node.parent))
      noteValues(node.expression);
    else if (ts.isJsxAttribute(node) && READ.includes(node.name.getText()) && node.initializer) {
      if (ts.isStringLiteral(node.initializer)) note(node.initializer.text);
      else if (ts.isJsxExpression(node.initializer) && node.initializer.expression)
        noteValues(node.initializer.expression);
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

test("the language is the first of the browser's that the console has, with its region", () => {
  expect(languageOf(["fr-CH", "de-CH", "en"])).toBe("de");
  expect(languageOf(["fr"])).toBe("en");
  expect(localeOf("de", ["en-GB", "de-CH"])).toBe("de-CH");
  expect(localeOf("de", ["fr"])).toBe("de");
});

test("the texts change with the language, and back", async () => {
  const storage = new MemoryStorage();
  globalThis.localStorage = storage;
  expect(messages("parts").cancel).toBe(en.parts.cancel);

  await chooseLanguage("de");
  expect(messages("parts").cancel).toBe(de.parts.cancel);
  await chooseLanguage("en");

  expect(messages("parts").cancel).toBe(en.parts.cancel);
  expect(storage.text).toContain("en");
});

test("numbers have the form of the word that their language gives them", () => {
  expect(wordsIn("en").counted(1, "document", "documents")).toBe("1 document");
  expect(wordsIn("en").counted(2000, "document", "documents")).toBe("2,000 documents");
  expect(wordsIn("de").counted(2000, "Dokument", "Dokumente")).toBe("2.000 Dokumente");
  expect(wordsIn("de").counted(0, "Dokument", "Dokumente")).toBe("0 Dokumente");
});

test("German says everything in other words, but for names", () => {
  const same: string[] = [];
  const compare = (one: unknown, other: unknown, path: string): void => {
    if (typeof one === "string" && one === other) same.push(path);
    if (typeof one !== "object" || one === null) return;
    for (const [name, value] of Object.entries(one))
      compare(value, (other as Record<string, unknown>)[name], path ? `${path}.${name}` : name);
  };

  compare(en, de, "");

  expect(same).toEqual([
    "admin.access.label",
    "admin.access.labelIs",
    "documents.name",
    "documents.uploads",
    "documents.versionField",
    "frame.themes.system",
    "parts.copyKinds.curl",
    "parts.copyKinds.python",
    "parts.testTarget",
    "parts.version",
    "parts.reranker",
    "quality.grades.2",
    "quality.ndcg",
  ]);
});
