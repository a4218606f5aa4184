/** The deletion of documents, which waits for "Undo". */
import type { Client } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import { messages } from "../../messages";
import { documentName } from "../../parts/names";
import { problems, type Undoable, useWaiting } from "../../parts/Undo";
import { forEach } from "./forEach";
import { followDeletions, lastListing } from "./listing";

type Removed = Pick<DocumentSummary, "id" | "uri" | "key">;

/** The ids of the documents that are deleted unless somebody presses "Undo". */
export function useRemoved(): ReadonlySet<string> {
  return new Set(useWaiting().flatMap((action) => action.documents ?? []));
}

export function removal(client: Client, documents: readonly Removed[], onUndone: () => void): Undoable {
  const text = messages("documents");
  const ids = documents.map(({ id }) => id);
  return {
    id: ids.join(" "),
    documents: ids,
    text: text.deletes(documents.length, documentName(documents[0]?.uri)),
    onUndone,
    run: async (isLeaving) => {
      if (isLeaving) {
        for (const id of ids) client.deleteAndLeave("/api/documents/{id}", { id });
        return;
      }
      const failed = await forEach(documents, async ({ id }) => {
        const deleted = await client.delete("/api/documents/{id}", { id });
        lastListing()?.replace(deleted); // null after people left the page
      });
      const remaining = new Set(failed.map(({ item }) => item));
      void followDeletions(
        client,
        documents.filter((each) => !remaining.has(each)),
      );
      const problem = failed[0] && text.notDeleted(failed.length, failed[0].error.message);
      if (problem) problems.add(problem);
    },
  };
}
