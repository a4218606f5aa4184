/** Whom the rules name, to choose from. */
import type { components } from "../../api/schema";

export function principals(rules: components["schemas"]["RulesView"] | null): string[] {
  if (rules === null) return [];
  const named = [
    ...rules.labels.flatMap(({ allow, deny }) => [...allow, ...deny]),
    ...rules.sees_everything,
    ...Object.values(rules.rights).flat(),
    ...rules.changes.map(({ principal }) => principal),
  ];
  return [...new Set(named)].filter((name) => name !== "everyone").sort();
}
