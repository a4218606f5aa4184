/** How uploads reach the service: a permit, then a form to the bucket, then the document's status. */
import type { Client } from "../../api/client";
import type { components } from "../../api/schema";
import type { DocumentList, DocumentSummary } from "../../api/types";

type Schemas = components["schemas"];
export type UploadRequest = Pick<Schemas["UploadRequest"], "key" | "content_type" | "size" | "attributes">;
export type UploadAnswer = Schemas["UploadAnswer"];
export type PresignedPost = Schemas["PresignedPost"];

export interface UploadApi {
  permit(request: UploadRequest, signal: AbortSignal): Promise<UploadAnswer>;
  send(
    upload: PresignedPost,
    file: File,
    signal: AbortSignal,
    onProgress: (bytes: number) => void,
  ): Promise<void>;
  /** null: the service does not know the document yet. */
  status(key: string): Promise<DocumentSummary | null>;
}

export function uploadApi(client: Client): UploadApi {
  return {
    permit: (request, signal) => client.post("/api/documents", request, signal),
    send: postForm,
    // By key: the service looks into the bucket too, and does not answer with 404 before it knows the document.
    status: async (key) => (await client.get<DocumentList>("/api/documents", { key })).documents[0] ?? null,
  };
}

/** XMLHttpRequest, because fetch does not report the progress of uploads. */
function postForm(
  upload: PresignedPost,
  file: File,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  return new Promise((done, failed) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(upload.fields)) form.append(name, value);
    form.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", upload.url);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () =>
      request.status < 300 ? done() : failed(new Error(refused(request.status, request.responseText)));
    request.onerror = () =>
      failed(
        new Error(
          navigator.onLine
            ? "The bucket cannot be reached, or it does not accept uploads from this page (CORS)."
            : "You are offline.",
        ),
      );
    request.onabort = () => failed(new Error("Cancelled"));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

function refused(status: number, xml: string): string {
  const message = /<Message>([^<]*)<\/Message>/.exec(xml)?.[1];
  return `The bucket refused the file: ${message ?? `HTTP ${status}`}`;
}
