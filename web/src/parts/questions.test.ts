import { expect, test } from "vitest";
import type { Client } from "../api/client";
import { answerable, candidates, definitionsIn, questionsIn } from "./questions";

test.each([
  ["## How do I reset a lost security key?", "How do I reset a lost security key?"],
  ["### What Are Management Events? ###", "What Are Management Events?"],
  ["**Who approves travel expenses?**", "Who approves travel expenses?"],
  ["Q: When is the salary paid in December?", "When is the salary paid in December?"],
  ["3. Warum läuft mein VPN-Zugang ab?", "Warum läuft mein VPN-Zugang ab?"],
  ["- Wie beantrage ich Elternzeit?", "Wie beantrage ich Elternzeit?"],
])("a question that stands on a line of its own is one: %s", (line, question) => {
  expect(questionsIn(`Before.\n\n${line}\n\nAfter.`)).toEqual([question]);
});

test.each([
  ["without words of its subject", "## What's next?"],
  ["with too few words", "## Where do I look?"],
  ["about its reader", "## What do you want to do?"],
  ["that refers to what stands before it", "## How long does this approval take?"],
  ["that refers to a list", "## Welche der folgenden Rollen brauche ich im Projekt?"],
  ["for yes or no", "## Are you a first-time user of the gateway?"],
  ["within a sentence", "Ask yourself: who approves travel expenses? Then write."],
  ["longer than a line", `## How do I ${"very ".repeat(20)}carefully restart gateways?`],
])("a question %s is none", (_, line) => {
  expect(questionsIn(`Before.\n\n${line}\n\nAfter.`)).toEqual([]);
});

test.each([
  [
    "A dead-letter queue is a queue for messages that failed.",
    "dead-letter queue",
    "What is a dead-letter queue?",
  ],
  [
    "Done. An Elastic IP address is a public address of ours.",
    "Elastic IP address",
    "What is an Elastic IP address?",
  ],
  [
    "Ein Gleitzeit-Konto ist ein Konto für Stunden, die übrig sind.",
    "Gleitzeit-Konto",
    "Was ist ein Gleitzeit-Konto?",
  ],
  [
    "“Eligible Employee” means every employee of a year.",
    "Eligible Employee",
    "What does “Eligible Employee” mean?",
  ],
  [
    "„Vertrauliche Daten“ bezeichnet Daten der Kunden.",
    "Vertrauliche Daten",
    "Was bedeutet „Vertrauliche Daten“?",
  ],
])("a term that is defined and used can be asked for: %s", (definition, term, question) => {
  expect(definitionsIn(`${definition} Later, the ${term} is used.`)).toEqual([question]);
  expect(definitionsIn(definition)).toEqual([]);
});

test.each([
  "The following is an example of a response. The following is long.",
  "A good example is a list of names that is short. Here is a good example.",
  "This type of key is a credential of one person. This type of key expires.",
  "A record is a row of the table that has values. Each record counts.",
  "“Agreement” means this agreement with all its parts. The Agreement ends.",
])("what is not a term of several words is not asked for: %s", (text) => {
  expect(definitionsIn(text)).toEqual([]);
});

test("each document gives one question, and those that documents ask come first", () => {
  const found = candidates([
    { content: "A split tree is a tree with two keys. The split tree is fast." },
    {
      content: "",
      passages: [{ content: "## How do I restart gateways?" }, { content: "## Who repairs gateways?" }],
    },
    { content: "## How do I restart gateways?" },
    { content: "Nothing to ask." },
  ]);

  expect(found).toEqual(["How do I restart gateways?", "What is a split tree?"]);
});

const RESTART = "## How do I restart gateways?";

/** Answers searches with one passage, and notes them. */
class Searches {
  readonly asked: string[] = [];
  constructor(private readonly answers: Record<string, { answerable?: boolean | null; content: string }>) {}

  post = (async (_: string, { query }: { query: string }) => {
    this.asked.push(query);
    const { answerable = true, ...result } = this.answers[query] ?? {};
    return { answerable, results: "content" in result ? [result] : [] };
  }) as unknown as Client["post"];
}

const { signal } = new AbortController();

test("listed questions are shown if a search answers them, and no more are searched than are missing", async () => {
  const yes = { content: "x" };
  const searches = new Searches({
    A: yes,
    B: { answerable: false, content: "x" },
    C: yes,
    D: yes,
    E: yes,
    F: yes,
  });

  expect(await answerable(searches, ["A", "B", "C", "D", "E", "F"], ["probe"], signal)).toEqual([
    "A",
    "C",
    "D",
    "E",
  ]);
  expect(searches.asked).toEqual(["A", "B", "C", "D", "E"]);
});

test("the questions of documents follow if too few listed ones are answered", async () => {
  const found = { content: RESTART };
  const searches = new Searches({ A: found, probe: found, "How do I restart gateways?": found });

  expect(await answerable(searches, ["A", "B"], ["probe"], signal)).toEqual([
    "A",
    "How do I restart gateways?",
  ]);
});

test("a question of a document is not shown if a document without it comes first", async () => {
  const searches = new Searches({
    probe: { content: RESTART },
    "How do I restart gateways?": { content: "x" },
  });

  expect(await answerable(searches, [], ["probe"], signal)).toEqual([]);
});

test("at most eight listed questions are searched", async () => {
  const searches = new Searches({});

  await answerable(searches, Array.from("ABCDEFGHIJKL"), ["probe"], signal);

  expect(searches.asked).toEqual([...Array.from("ABCDEFGH"), "probe"]);
});
