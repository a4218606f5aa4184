/** A look at a document without leaving the list. */
import type { DocumentSummary } from "../../api/types";
import { useLoaded } from "../../context";
import { bytes, time } from "../../format";
import { useMessages } from "../../messages";
import { Sheet } from "../../parts/Dialog";
import { documentKey, documentName, plain } from "../../parts/names";
import { Scrolling, Skeleton, StatusBadge } from "../../parts/shapes";
import { ErrorBox, sentence } from "../../parts/states";
import { address } from "../../route";
import { Download } from "./Download";
import { ReadText } from "./ReadText";

export function Preview({ document, onClose }: { document: DocumentSummary; onClose: () => void }) {
  const text = useMessages("documents");
  const { uri, id, status, reason, size, updated_at } = document;
  const isFailed = status === "FAILED";
  const view = useLoaded(`preview ${uri}`, (client, signal) =>
    isFailed ? Promise.resolve(null) : client.post("/api/view", { uri }, signal),
  );
  return (
    <Sheet title={documentName(uri)} isWide onClose={onClose}>
      {() => (
        <>
          <p className="row small">
            {status !== "INDEXED" && <StatusBadge status={status} />}
            <bdi className="path">{documentKey(uri)}</bdi>
            <span>{[bytes(size), time(updated_at)].join(" · ")}</span>
          </p>
          <div className="row">
            <Download document={document} />
            <a className="button" href={address("documents", {}, id)}>
              {text.openDocument}
            </a>
          </div>
          {reason && (
            <p dir="auto">
              {isFailed && `${text.notFound} `}
              {sentence(plain(reason))}
            </p>
          )}
          {view.error && <ErrorBox error={view.error} onRetry={view.reload} />}
          {view.isLoading && <Skeleton lines={8} />}
          {view.data?.image && (
            <img
              className="page-image"
              src={`data:${view.data.image_type};base64,${view.data.image}`}
              width={view.data.width ?? undefined}
              height={view.data.height ?? undefined}
              alt={text.pageImage(view.data.page)}
            />
          )}
          {view.data && !view.data.image && (
            <Scrolling className="preview-text" label={text.readText} dir="auto">
              <ReadText text={view.data.text} />
            </Scrolling>
          )}
        </>
      )}
    </Sheet>
  );
}
