/** People as the service has seen them, and what may be said about them. */

import type { components } from "../../api/schema";

export type Person = components["schemas"]["SeenPerson"];

/** Whether a person has all of these words: in their name, groups, labels or folders. */
export function matches(person: Person, words: string): boolean {
  const known = [
    person.principal,
    ...person.groups,
    ...(person.labels ?? []),
    ...person.writable.map(({ prefix }) => prefix),
  ]
    .join("\n")
    .toLowerCase();
  return wordsOf(words).every((word) => known.includes(word));
}

export function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** How to look as this person: a user with the groups that the service knows, others with theirs. */
export function viewerOf({ principal, groups }: Person): string {
  return principal.startsWith("user:") ? principal : [principal, ...groups].join(",");
}

/** The kind of a principal, and its name. */
export function partsOf(principal: string): [kind: string, name: string] {
  const at = principal.indexOf(":");
  return at < 0 ? ["", principal] : [principal.slice(0, at), principal.slice(at + 1)];
}

/** What a person belongs to. The scopes of a user's token are those of the program that they use. */
export function groupsOf(principal: string, groups: readonly string[]): string[] {
  return groups.filter((name) => !principal.startsWith("user:") || partsOf(name)[0] !== "scope");
}
