/** What failed, by what is the matter. */
import type { components } from "../../api/schema";

export type Failed = components["schemas"]["FailedDocument"];

/** Documents that failed for the same reason, so that it is said once. */
export interface FailureGroup {
  reasons: readonly string[];
  advice: string;
  /** Whether it can succeed as it is. */
  canReplay: boolean;
  documents: Failed[];
}

/** The groups, those with most documents first. */
export function failureGroups(documents: readonly Failed[]): FailureGroup[] {
  const found = new Map<string, FailureGroup>();
  for (const document of documents) {
    const { reasons, advice, can_replay: canReplay } = document;
    const key = JSON.stringify([reasons, advice, canReplay]);
    const group = found.get(key) ?? { reasons, advice, canReplay, documents: [] };
    group.documents.push(document);
    found.set(key, group);
  }
  return [...found.values()].sort((a, b) => b.documents.length - a.documents.length);
}
