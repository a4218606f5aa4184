import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { DEFAULTS } from "../../settings";
import { asCommand, asCurl, asPython, python } from "./commands";

const HARD = { ...DEFAULTS, question: `It's "$HOME" \`id\` \\ 50 %`, corpus: "a'b", infer: false };

function argumentsOf(command: string): string[] {
  const script = command.replace(/^\S+/, "printf '%s\\0'");
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test("a shell passes the question on as it was asked", () => {
  expect(argumentsOf(asCommand(HARD))).toEqual(["ask", HARD.question, "--corpus", "a'b", "--no-infer"]);
  expect(JSON.parse(argumentsOf(asCurl(HARD, "http://localhost", "none")).at(-1) ?? "")).toEqual({
    question: HARD.question,
    corpus_filter: "a'b",
    infer_filter: false,
  });
});

test("Python gets Python's literals", () => {
  expect(python({ a: [true, null, 1.5], "b'": "c\n" })).toBe(`{"a": [True, None, 1.5], "b'": "c\\n"}`);
  expect(asPython(HARD)).toContain("infer_filter=False");
});
