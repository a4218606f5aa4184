/** Gets the file of a document: the service signs an address for whoever may see it, and the browser saves it. */
import type { DocumentSummary } from "../../api/types";
import { useAction, useApp } from "../../context";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { documentName } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { ErrorBox } from "../../parts/states";

export function Download({ document: { id, uri } }: { document: Pick<DocumentSummary, "id" | "uri"> }) {
  const text = useMessages("documents");
  const { client } = useApp();
  const { run, isRunning, error } = useAction();
  const download = () =>
    run(async () => {
      const { url } = await client.get("/api/documents/{id}/download", { id });
      const link = document.createElement("a");
      link.href = url;
      link.referrerPolicy = "origin"; // the local stack refuses pages that it does not know
      link.click();
    });
  return (
    <>
      {/* Not disabled, which would take the focus from it. */}
      <Button
        aria-label={text.downloadOne(documentName(uri))}
        aria-disabled={isRunning}
        onClick={() => isRunning || void download()}
      >
        <Icon name="download" size={16} /> {text.download}
      </Button>
      {error && <ErrorBox error={error} onRetry={download} />}
    </>
  );
}
