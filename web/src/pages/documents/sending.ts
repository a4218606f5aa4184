/** How uploads reach the service: a permit, then a form to the bucket, then the document's status. */
import { ApiError, type Client } from "../../api/client";
import type { components } from "../../api/schema";
import type { DocumentSummary } from "../../api/types";

type Schemas = components["schemas"];
export type UploadRequest = Pick<
  Schemas["UploadRequest"],
  "key" | "content_type" | "size" | "attributes" | "overwrite"
>;
type UploadAnswer = Schemas["UploadAnswer"];
type SignedUpload = Schemas["SignedUpload"];

/** The code of the answer if a document has the name. */
export const EXISTS = "DocumentExists";

export interface UploadApi {
  permit(request: UploadRequest, signal: AbortSignal): Promise<UploadAnswer>;
  /** Throws an ApiError, with the code EXISTS if another document was faster. */
  send(
    upload: SignedUpload,
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
    send: sendFile,
    // By key: the service looks into the bucket too, and does not answer with 404 before it knows the document.
    status: async (key) => (await client.get("/api/documents", { key })).documents[0] ?? null,
  };
}

/** XMLHttpRequest, because fetch does not report the progress of uploads. */
function sendFile(
  upload: SignedUpload,
  file: File,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open(upload.method, upload.url);
    for (const [name, value] of Object.entries(upload.headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () =>
      request.status < 300 ? done() : failed(refused(request.status, request.responseText));
    request.onerror = () =>
      failed(
        new ApiError(
          navigator.onLine
            ? "The bucket cannot be reached, or it does not accept uploads from this page (CORS)."
            : "You are offline.",
          0,
          "Unreachable",
        ),
      );
    request.onabort = () => failed(new Error("Cancelled"));
    signal.addEventListener("abort", () => request.abort());
    request.send(upload.method === "PUT" ? file : formOf(upload, file));
  });
}

function formOf({ fields }: SignedUpload, file: File): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", file);
  return form;
}

/** S3 answers a conditional request with 412, or with 409 if two of them meet. */
const TAKEN = [409, 412];

function refused(status: number, xml: string): ApiError {
  if (TAKEN.includes(status)) return new ApiError("Another document has this name.", status, EXISTS);
  const message = /<Message>([^<]*)<\/Message>/.exec(xml)?.[1];
  return new ApiError(`The bucket refused the file: ${message ?? `HTTP ${status}`}`, status, "Refused");
}
