/** The uploads of this tab. They live outside the page, so they go on while people look at other pages. */
import { ApiError } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import type { Kept } from "../../kept";
import { messages } from "../../messages";
import type { Attributes } from "../../parts/attributes";
import { isFinal } from "../../status";
import { Store, useStore } from "../../store";
import { type Chosen, keyOf, mediaType, numbered, refusal } from "./files";
import { EXISTS, type UploadApi } from "./sending";

const AT_ONCE = 3;
const FIRST_DELAY_SECONDS = 0.5;
const LONGEST_DELAY_SECONDS = 15;
/** With more documents than this in work, each is asked for less often. */
const FEW = 20;
const NOTIFY_MILLISECONDS = 60;

/** "exists": another document has the name, and people choose what becomes of it. */
type UploadState =
  | "refused"
  | "waiting"
  | "sending"
  | "processing"
  | "done"
  | "failed"
  | "cancelled"
  | "exists";

/** What becomes of a document of the same name: it is replaced, or the new one gets another name. */
export type Choice = "replace" | "both";

export interface Upload {
  readonly number: number;
  readonly key: string;
  readonly size: number;
  readonly state: UploadState;
  readonly sent: number;
  /** Why it was refused or failed. */
  readonly reason: string | null;
  /** The document's id, as soon as it is known. */
  readonly document: string | null;
  readonly status: DocumentSummary["status"] | null;
  /** Whether a failed upload can succeed if it is sent again as it is. */
  readonly canSucceed: boolean;
  /** The page was loaded again since, so that the file is no longer there to be sent. */
  readonly isLost: boolean;
}

/** The list, for as long as the tab is open. */
const KEPT = "uploads.list";
const MAX_KEPT = 500;

interface Work {
  file: File;
  attributes: Attributes;
  abort: AbortController;
  /** The key that was asked for. */
  key: string;
  choice: Choice | null;
}

/** Numbers that are tried for a document that gets another name. */
const NUMBERS = 50;
/** Answers of the service that a repetition can change: a session that ended, a timeout, too many requests. */
const PASSING = [0, 401, 408, 429];

export class UploadQueue extends Store<readonly Upload[]> {
  private readonly uploads = new Map<number, Upload>();
  private readonly work = new Map<number, Work>();
  private next = 1;
  private kept: Pick<Kept, "read" | "write"> | null = null;
  private written = "";
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly sleep: (seconds: number) => Promise<void> = (seconds) =>
      new Promise((done) => setTimeout(done, seconds * 1000)),
  ) {
    super([]);
  }

  /** Show what was uploaded in this tab before the page was loaded again, and follow what is being indexed. */
  open(api: UploadApi, kept: Pick<Kept, "read" | "write">): void {
    if (this.kept !== null) return;
    this.kept = kept;
    for (const each of kept.read<Upload[]>(KEPT, [])) {
      const number = this.next++;
      const isLost = each.state === "waiting" || each.state === "sending" || each.state === "exists";
      const upload: Upload = isLost
        ? { ...each, number, state: "failed", sent: 0, reason: messages("documents").interrupted, isLost }
        : { ...each, number, isLost: true };
      this.uploads.set(number, upload);
      if (upload.state === "processing") void this.follow(api, number, upload.key);
    }
    this.changed();
  }

  /** Queue files; those that cannot be uploaded are listed with the reason. */
  add(
    api: UploadApi,
    chosen: readonly Chosen[],
    folder: string,
    attributes: Attributes,
    choice: Choice | null = null,
  ): void {
    const active = new Set(
      [...this.uploads.values()].filter((each) => isActive(each)).map((each) => each.key),
    );
    for (const { path, file } of chosen) {
      const key = keyOf(folder, path);
      const reason = active.has(key) ? messages("documents").samePlace : refusal(path, file.size);
      active.add(key);
      const number = this.next++;
      this.work.set(number, { file, attributes, abort: new AbortController(), key, choice });
      this.uploads.set(number, {
        number,
        key,
        size: file.size,
        state: reason === null ? "waiting" : "refused",
        sent: 0,
        reason,
        document: null,
        status: null,
        canSucceed: true,
        isLost: false,
      });
    }
    this.changed();
    this.start(api);
  }

  /** Go on with an upload whose name another document has. */
  decide(api: UploadApi, number: number, choice: Choice): void {
    const work = this.work.get(number);
    if (!work || this.uploads.get(number)?.state !== "exists") return;
    work.choice = choice;
    this.change(number, { state: "waiting", reason: null });
    this.start(api);
  }

  decideAll(api: UploadApi, choice: Choice): void {
    for (const { number } of this.uploads.values()) this.decide(api, number, choice);
  }

  cancel(number: number): void {
    const upload = this.uploads.get(number);
    if (!upload || !["waiting", "sending", "exists"].includes(upload.state)) return;
    this.work.get(number)?.abort.abort();
    this.change(number, { state: "cancelled", sent: 0 });
  }

  retry(api: UploadApi, number: number): void {
    const work = this.work.get(number);
    const upload = this.uploads.get(number);
    if (!work || !upload || (upload.state !== "failed" && upload.state !== "cancelled")) return;
    work.abort = new AbortController();
    // Somebody else may have written what is there by now, so people are asked again.
    work.choice = null;
    work.key = upload.key;
    this.change(number, { state: "waiting", sent: 0, reason: null, status: null, canSucceed: true });
    this.start(api);
  }

  cancelAll(): void {
    for (const number of this.uploads.keys()) this.cancel(number);
  }

  /** Try those again that can succeed. */
  retryFailed(api: UploadApi): void {
    for (const { number, state, canSucceed } of this.uploads.values())
      if (state === "failed" && canSucceed) this.retry(api, number);
  }

  /** Leave out of the list what is finished. */
  clear(): void {
    for (const { number, state } of this.uploads.values()) {
      if (state === "waiting" || state === "sending" || state === "processing" || state === "exists")
        continue;
      this.uploads.delete(number);
      this.work.delete(number);
    }
    this.changed();
  }

  private start(api: UploadApi): void {
    for (const { number, state } of this.uploads.values()) {
      if (this.count("sending") >= AT_ONCE) return;
      if (state !== "waiting") continue;
      this.change(number, { state: "sending" });
      void this.send(api, number).finally(() => this.start(api));
    }
  }

  private async send(api: UploadApi, number: number): Promise<void> {
    const upload = this.uploads.get(number);
    const work = this.work.get(number);
    if (!upload || !work) return;
    const { signal } = work.abort;
    for (let copy = work.choice === "both" ? 2 : 0; ; copy++) {
      const key = copy === 0 ? work.key : numbered(work.key, copy);
      try {
        const id = await this.sendAs(api, number, key, work);
        this.change(number, { state: "processing", sent: upload.size, document: id, key });
        void this.follow(api, number, key);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.code === EXISTS) {
          if (work.choice === "both" && copy < NUMBERS) continue;
          this.change(number, { state: "exists", sent: 0, reason: null });
        } else
          this.change(number, {
            state: "failed",
            sent: 0,
            reason: (error as Error).message,
            canSucceed: !(error instanceof ApiError) || error.status >= 500 || PASSING.includes(error.status),
          });
      }
      return;
    }
  }

  /** Send a file, and return the document's id. */
  private async sendAs(api: UploadApi, number: number, key: string, work: Work): Promise<string> {
    const { file, attributes, abort, choice } = work;
    const permit = await api.permit(
      {
        key,
        content_type: mediaType(key) ?? "application/octet-stream",
        size: file.size,
        overwrite: choice === "replace",
        ...(Object.keys(attributes).length > 0 ? { attributes } : {}),
      },
      abort.signal,
    );
    await api.send(permit.upload, file, abort.signal, (sent) =>
      this.change(number, { sent: Math.min(sent, file.size) }),
    );
    return permit.id;
  }

  /** Ask for the document's status until it is final. */
  private async follow(api: UploadApi, number: number, key: string): Promise<void> {
    let delay = FIRST_DELAY_SECONDS;
    for (;;) {
      await this.sleep(delay * Math.max(1, this.count("processing") / FEW));
      delay = Math.min(delay * 1.5, LONGEST_DELAY_SECONDS);
      if (!this.uploads.has(number)) return;
      const document = await api.status(key).catch((error: Error) => error);
      if (document instanceof Error) {
        this.change(number, { reason: messages("documents").statusUnknown(document.message) });
        continue;
      }
      if (document === null) continue; // the event of the upload is still on its way
      if (!isFinal(document.status)) {
        this.change(number, { status: document.status, reason: null });
        continue;
      }
      this.change(number, {
        state: document.searchable ? "done" : "failed",
        status: document.status,
        reason: document.reason,
        canSucceed: false,
      });
      return;
    }
  }

  private keep(shown: readonly Upload[]): void {
    const text = JSON.stringify(shown.slice(-MAX_KEPT).map((each) => ({ ...each, sent: 0 })));
    if (text === this.written) return;
    this.written = text;
    this.kept?.write(KEPT, JSON.parse(text));
  }

  private count(state: UploadState): number {
    return [...this.uploads.values()].filter((upload) => upload.state === state).length;
  }

  private change(number: number, change: Partial<Upload>): void {
    const upload = this.uploads.get(number);
    if (!upload) return;
    this.uploads.set(number, { ...upload, ...change });
    this.changed();
  }

  /** Progress comes often: tell it a few times a second. */
  private changed(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const shown = [...this.uploads.values()];
      guard(shown);
      this.keep(shown);
      this.set(shown);
    }, NOTIFY_MILLISECONDS);
  }
}

/** What the list is divided into: what needs people first. */
export type Group = "decide" | "retry" | "hopeless" | "active" | "cancelled" | "done";
export const GROUPS: readonly Group[] = ["decide", "retry", "hopeless", "active", "cancelled", "done"];

export function groupOf({ state, canSucceed, isLost }: Upload): Group {
  if (state === "exists") return "decide";
  if (state === "failed") return canSucceed && !isLost ? "retry" : "hopeless";
  if (state === "refused") return "hopeless";
  if (state === "cancelled" || state === "done") return state;
  return "active";
}

/** The browser warns people who leave while files are on their way. */
function guard(uploads: readonly Upload[]): void {
  const isSending = uploads.some(({ state }) => state === "waiting" || state === "sending");
  if (isSending) globalThis.addEventListener?.("beforeunload", warn);
  else globalThis.removeEventListener?.("beforeunload", warn);
}

function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

export function isActive(upload: Upload): boolean {
  return upload.state === "waiting" || upload.state === "sending" || upload.state === "processing";
}

interface Overall {
  active: number;
  done: number;
  failed: number;
  /** Of those that failed. */
  canSucceed: number;
  refused: number;
  exists: number;
  /** Share of the bytes that were sent. */
  sent: number;
}

export function overall(uploads: readonly Upload[]): Overall {
  const of = (...states: UploadState[]) => uploads.filter((each) => states.includes(each.state));
  const counted = of("waiting", "sending", "processing", "done");
  const size = counted.reduce((sum, each) => sum + each.size, 0);
  return {
    active: of("waiting", "sending", "processing").length,
    done: of("done").length,
    failed: of("failed").length,
    canSucceed: of("failed").filter((each) => groupOf(each) === "retry").length,
    refused: of("refused").length,
    exists: of("exists").length,
    sent: size === 0 ? 0 : counted.reduce((sum, each) => sum + each.sent, 0) / size,
  };
}

export const uploads = new UploadQueue();

export function useUploads(): readonly Upload[] {
  return useStore(uploads);
}
