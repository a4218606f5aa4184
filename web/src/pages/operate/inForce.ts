/** The settings that are in force. */

import type { components } from "../../api/schema";
import { wordsOf } from "./seen";

export type Setting = components["schemas"]["SettingInForce"];

/** Those that have all of the words in their name, value or description: what somebody changed, and the defaults. */
export function sorted(settings: readonly Setting[], words: string) {
  const wanted = wordsOf(words);
  const found = settings.filter(({ name, value, description }) => {
    const known = `${name}\n${value ?? ""}\n${description ?? ""}`.toLowerCase();
    return wanted.every((word) => known.includes(word));
  });
  return {
    changed: found.filter(({ origin }) => origin !== "default"),
    defaults: found.filter(({ origin }) => origin === "default"),
  };
}
