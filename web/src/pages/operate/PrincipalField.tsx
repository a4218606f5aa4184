/** A field for users and groups, which offers those that the rules name and those who were seen. */

import type { components } from "../../api/schema";
import { useLoaded } from "../../context";
import { useMessages } from "../../messages";
import { TextField } from "../../parts/fields";

export type Rules = components["schemas"]["RulesView"];

export function useRules() {
  return useLoaded("access", (client, signal) => client.get("/api/access", {}, signal));
}

/** Users and groups to choose from. Without them, people write the name in full. */
export function usePrincipals(rules: Rules | null): string[] {
  const seen = useLoaded("people", (client, signal) => client.get("/api/people", {}, signal)).data;
  const named = rules
    ? [
        ...rules.labels.flatMap(({ allow, deny }) => [...allow, ...deny]),
        ...rules.sees_everything,
        ...Object.values(rules.rights).flat(),
        ...rules.changes.map(({ principal }) => principal),
      ]
    : [];
  const people = (seen?.people ?? []).flatMap(({ principal, groups }) => [principal, ...groups]);
  return [...new Set([...named, ...people])].filter((name) => name !== "everyone").sort();
}

interface Props {
  value: string;
  onChange: (value: string) => void;
  /** Names to choose from. */
  known: readonly string[];
  pattern?: string;
}

export function PrincipalField(field: Props) {
  const text = useMessages("admin").access;
  return (
    <TextField {...field} label={text.who} className="grow" required autoComplete="off" spellCheck={false} />
  );
}
