/** Conversations as Markdown, with the sources of each answer. */
import type { AskResponse, Conversation } from "../api/types";
import { messages } from "../messages";
import { documentKey, place, plain } from "./names";

/** The question, the answer and what it cites, to paste elsewhere. */
export function withSources(response: AskResponse): string {
  return [response.question, "", response.answer, "", ...cited(response)].join("\n");
}

export function asMarkdown({ title, turns }: Pick<Conversation, "title" | "turns">): string {
  const text = messages("ask");
  const parts = turns.flatMap((turn) => {
    const response = turn.response as AskResponse | null;
    const answer = response
      ? [response.answer, ...cited(response).map((line) => `- ${line}`)]
      : [`*${turn.withheld === "deleted" ? text.withheldDeleted : text.withheldRights}*`];
    return [`## ${oneLine(turn.question)}`, ...paragraphs(answer)];
  });
  return `${[`# ${oneLine(title)}`, ...parts].join("\n\n")}\n`;
}

function cited(response: AskResponse): string[] {
  return response.sources
    .filter((source) => source.cited)
    .map((source) => {
      const name = source.source ? documentKey(source.source) : messages("parts").unnamed;
      return `[${source.number}] ${[name, place({ ...source, section: null })].filter(Boolean).join(", ")}`;
    });
}

/** The answer, and its sources as one list. */
function paragraphs([answer = "", ...lines]: string[]): string[] {
  return lines.length > 0 ? [answer, lines.join("\n")] : [answer];
}

function oneLine(text: string): string {
  return plain(text).replace(/\s+/g, " ").trim();
}

/** A name for a file with that title. */
export function fileName(title: string): string {
  const short = oneLine(title)
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "");
  return `${short.slice(0, 60) || "conversation"}.md`;
}

/** Save a text as a file. */
export function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
