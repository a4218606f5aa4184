/** Attributes as people write them: NAME=VALUE, with the same meaning as on the command line. */
import type { DocumentSummary } from "../api/types";
import { messages } from "../messages";

export type Attributes = DocumentSummary["attributes"];
type AttributeValue = Attributes[string];

/** Read a value: a JSON number, boolean, quoted text or list of texts is read as such; anything else is a text. */
export function parseValue(text: string): AttributeValue {
  const trimmed = text.trim();
  try {
    const value: unknown = JSON.parse(trimmed);
    if (typeof value === "number" || typeof value === "boolean" || typeof value === "string") return value;
    if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string"))
      return value;
  } catch {
    // It is a text.
  }
  return trimmed;
}

/** Write a value so that parseValue reads the same one. */
export function writeValue(value: AttributeValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return parseValue(value) === value ? value : JSON.stringify(value);
}

/** Read one NAME=VALUE pair from each line. A string is what is wrong. */
export function parsePairs(text: string): Attributes | string {
  const found: Attributes = {};
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const at = line.indexOf("=");
    const name = line.slice(0, Math.max(at, 0)).trim();
    const value = line.slice(at + 1).trim();
    if (!name || !value) return messages("parts").notAPair(line.trim());
    if (name in found) return messages("parts").pairTwice(name);
    found[name] = parseValue(value);
  }
  return found;
}
