import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/client";
import type { DocumentSummary } from "../../api/types";
import { keyOf, refusal } from "./files";
import { EXISTS, type UploadApi } from "./sending";
import { overall, type Upload, UploadQueue } from "./uploads";

const file = (name: string, content = "text") => ({ path: name, file: new File([content], name) });
const turn = () => new Promise((done) => setTimeout(done, 5));
const until = async (isTrue: () => boolean) => {
  for (let round = 0; round < 400 && !isTrue(); round++) await turn();
  expect(isTrue()).toBe(true);
};

class Service implements UploadApi {
  running = 0;
  most = 0;
  permitted: string[] = [];
  statuses = ["UPLOADED", "INDEXING", "INDEXED"];
  failing = 0;
  release: (() => void)[] = [];
  held = false;

  taken = new Set<string>();
  refusal: ApiError | null = null;

  async permit({ key, overwrite }: { key?: string | null; overwrite?: boolean }) {
    if (this.refusal) throw this.refusal;
    if (!overwrite && this.taken.has(key ?? "")) throw new ApiError("It is in the bucket", 409, EXISTS);
    this.permitted.push(`${key}${overwrite ? " replaced" : ""}`);
    return { id: key ?? "", upload: { url: "", fields: {}, size: 1, expires_at: "" } } as never;
  }

  async send(_: unknown, sent: File, signal: AbortSignal, onProgress: (bytes: number) => void) {
    this.most = Math.max(this.most, ++this.running);
    try {
      if (this.held)
        await new Promise<void>((done, failed) => {
          this.release.push(done);
          signal.addEventListener("abort", () => failed(new Error("Cancelled")));
        });
      await turn();
      if (this.failing-- > 0) throw new Error("The bucket refused the file");
      onProgress(sent.size);
    } finally {
      this.running--;
    }
  }

  async status() {
    const status = this.statuses.length > 1 ? this.statuses.shift() : this.statuses[0];
    if (status === "UPLOADED") return null;
    const searchable = status === "INDEXED";
    return {
      status,
      searchable,
      reason: searchable ? null : "It has no text",
    } as unknown as DocumentSummary;
  }
}

const states = (queue: UploadQueue) => queue.snapshot().map((each) => each.state);

describe("uploads", () => {
  it("are followed until searches find the document", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    queue.add(new Service(), [file("a.md")], "people/", {});
    await until(() => states(queue)[0] === "done");
    expect(queue.snapshot()[0]).toMatchObject({ key: "people/a.md", status: "INDEXED", sent: 4 });
  });

  it("say why indexing failed", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.statuses = ["FAILED"];
    queue.add(service, [file("a.md")], "", {});
    await until(() => states(queue)[0] === "failed");
    expect(queue.snapshot()[0]?.reason).toBe("It has no text");
  });

  it("replace a document only if people choose it", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.statuses = ["INDEXED"];
    service.taken = new Set(["a.md", "b.md", "b (2).md"]);
    queue.add(service, [file("a.md"), file("b.md")], "", {});
    await until(() => states(queue).join() === "exists,exists");
    expect(service.permitted).toEqual([]);

    queue.decide(service, 1, "replace");
    queue.decide(service, 2, "both");

    await until(() => states(queue).join() === "done,done");
    expect(service.permitted.sort()).toEqual(["a.md replaced", "b (3).md"]);
    expect(queue.snapshot()[1]?.key).toBe("b (3).md");
  });

  it("ask too if another document was faster", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.send = async () => {
      throw new ApiError("Another document has this name.", 412, EXISTS);
    };
    queue.add(service, [file("a.md")], "", {});
    await until(() => states(queue)[0] === "exists");
  });

  it("that cannot succeed are not tried again with all others", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.statuses = ["INDEXED"];
    service.refusal = new ApiError("alice may write under people/", 403, "NotAllowed");
    queue.add(service, [file("a.md")], "", {});
    await until(() => states(queue)[0] === "failed");
    service.refusal = new ApiError("Rate exceeded", 429, "Throttled");
    queue.add(service, [file("b.md")], "", {});
    await until(() => states(queue)[1] === "failed");
    expect(overall(queue.snapshot())).toMatchObject({ failed: 2, canSucceed: 1 });
    service.refusal = null;

    queue.retryFailed(service);

    await until(() => states(queue)[1] === "done");
    expect(states(queue)).toEqual(["failed", "done"]);
    expect(service.permitted).toEqual(["b.md"]);
  });

  it("run three at a time", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.statuses = ["INDEXED"];
    queue.add(
      service,
      Array.from({ length: 10 }, (_, number) => file(`${number}.md`)),
      "",
      {},
    );
    await until(() => states(queue).filter((each) => each === "done").length === 10);
    expect(service.most).toBe(3);
  });

  it("can be cancelled and tried again", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.held = true;
    service.statuses = ["INDEXED"];
    queue.add(service, [file("a.md")], "", {});
    await until(() => service.running === 1);
    queue.cancel(1);
    await until(() => service.running === 0 && states(queue)[0] === "cancelled");
    service.held = false;
    queue.retry(service, 1);
    await until(() => states(queue)[0] === "done");
  });

  it("can be tried again after the bucket refused them", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.failing = 1;
    service.statuses = ["INDEXED"];
    queue.add(service, [file("a.md")], "", {});
    await until(() => states(queue)[0] === "failed");
    queue.retry(service, 1);
    await until(() => states(queue)[0] === "done");
  });

  it("ask again before they replace a document, whatever was chosen before", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    service.statuses = ["FAILED"];
    queue.add(service, [file("indexed.md")], "", {});
    await until(() => states(queue)[0] === "failed");
    service.taken = new Set(["indexed.md", "refused.md"]);
    service.failing = 1;
    queue.add(service, [file("refused.md")], "", {});
    await until(() => states(queue)[1] === "exists");
    queue.decide(service, 2, "replace");
    await until(() => states(queue)[1] === "failed");
    const before = [...service.permitted];

    queue.retry(service, 1);
    queue.retry(service, 2);

    await until(() => states(queue).join() === "exists,exists");
    expect(service.permitted).toEqual(before);
  });

  it("leave out what the service cannot read", async () => {
    const queue = new UploadQueue(turn as () => Promise<void>);
    const service = new Service();
    queue.add(service, [file("a.exe"), file("b.md", ""), file("c.md.metadata.json")], "", {});
    await until(() => states(queue).length === 3);
    expect(states(queue)).toEqual(["refused", "refused", "refused"]);
    expect(service.permitted).toEqual([]);
  });

  it("are summed by bytes, without what is not sent", () => {
    const upload = (state: Upload["state"], size: number, sent: number) => ({ state, size, sent }) as Upload;
    expect(
      overall([
        upload("done", 10, 10),
        upload("sending", 30, 10),
        upload("refused", 99, 0),
        upload("failed", 9, 0),
      ]),
    ).toEqual({ active: 1, done: 1, failed: 1, canSucceed: 0, refused: 1, exists: 0, sent: 0.5 });
  });
});

describe("files", () => {
  it("get a key below the folder", () => {
    expect(keyOf("/a/b/", "c/d.md")).toBe("a/b/c/d.md");
    expect(keyOf("", "d.md")).toBe("d.md");
  });

  it("are read by their suffix in any case", () => {
    expect(refusal("A.PDF", 1)).toBeNull();
    expect(refusal("archive.tar.gz", 1)).toContain("not supported");
  });
});
