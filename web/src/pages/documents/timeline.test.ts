import { describe, expect, it } from "vitest";
import type { DocumentDetail } from "../../api/types";
import { probe, steps } from "./timeline";

describe("the timeline", () => {
  it("begins when the object was written, and says how long each step took", () => {
    const document = {
      last_modified: "2026-01-01T00:00:00Z",
      history: [
        { at: "2026-01-01T00:00:02Z", status: "WAITING", reason: null },
        { at: "2026-01-01T00:00:02.5Z", status: "FAILED", reason: "It is empty" },
      ],
    } as unknown as DocumentDetail;
    expect(steps(document)).toEqual([
      {
        at: "2026-01-01T00:00:00Z",
        status: null,
        text: "Written to the bucket",
        reason: null,
        seconds: null,
      },
      { at: "2026-01-01T00:00:02Z", status: "WAITING", text: "Waiting", reason: null, seconds: 0.5 },
      {
        at: "2026-01-01T00:00:02.5Z",
        status: "FAILED",
        text: "Failed",
        reason: "It is empty",
        seconds: null,
      },
    ]);
  });
});

describe("the probe search", () => {
  it("asks with the title and the first words, each once", () => {
    expect(probe("Leave", "# Leave\n\n- Employees get  30 days.")).toBe("Leave Employees get 30 days.");
    expect(probe(null, "")).toBe("");
    expect(probe(null, "x".repeat(500)).length).toBe(160);
  });
});
