import { describe, expect, it } from "vitest";
import { en } from "../../messages/en";
import {
  axisEnd,
  backlog,
  findings,
  nextPause,
  problems,
  readings,
  type ServiceStatus,
  summary,
} from "./service";

const AT = "2026-01-01T00:00:00Z";
const WELL: ServiceStatus = {
  documents: { INDEXED: 12, FAILED: 0 },
  queues: [],
  dead_letters: 0,
  alarms: [{ name: "Errors", state: "OK", reason: "", since: AT }],
  last_reconciliation: null,
  throughput: [],
  notes: [],
};

describe("problems", () => {
  it("are none if all is well", () => {
    expect(problems(WELL)).toEqual([]);
    expect(problems({ ...WELL, alarms: null })).toEqual([]);
  });

  it("name alarms, decisions and failed documents, and lead to what can be done", () => {
    const status: ServiceStatus = {
      ...WELL,
      alarms: [{ name: "Errors", state: "ALARM", reason: "5 errors: look at the log", since: AT }],
      dead_letters: 1,
      documents: { FAILED: 1200 },
    };

    expect(problems(status)).toEqual([
      { text: "Alarm: 5 errors" },
      { text: "1 message needs your decision", href: "#/documents?tab=failures" },
      { text: "1,200 documents failed", href: "#/documents?status=FAILED" },
    ]);
  });
});

it("what waits leaves out the messages that wait for a person", () => {
  const queues = [
    { name: "events", waiting: 3, in_flight: 2, oldest_seconds: 30 },
    { name: "jobs", waiting: 1, in_flight: 0, oldest_seconds: null },
    { name: "dead letters", waiting: 7, in_flight: 0, oldest_seconds: 9000 },
  ];

  expect(backlog({ ...WELL, queues })).toEqual({ waiting: 4, inFlight: 2, oldest: 30 });
  expect(backlog(WELL)).toEqual({ waiting: 0, inFlight: 0, oldest: null });
});

describe("a reconciliation", () => {
  const report = {
    compared: { documents: 426, registry: 430, bucket: 852, knowledge_base: 1 },
    differences: {
      not_searchable: { count: 1, samples: ["s3://b/a.md"] },
      something_new: { count: 2, samples: [] },
    },
    differences_in_all: 4,
    catalogue: { differences: 1 },
    out_of_reach: { count: 1, samples: [] },
  };

  it("is summed up in a line", () => {
    expect(summary(report)).toBe("426 documents compared, 4 differences found");
    expect(summary({ ...report, differences_in_all: 0 })).toBe("426 documents compared, no differences");
    expect(summary({})).toBe("");
  });

  it("names what it found in words, also what the console does not know", () => {
    expect(findings(report)).toEqual([
      "1 document missing from the index",
      "2 documents something new",
      "1 document in the index can only be removed by a full synchronisation",
      "1 count of documents was wrong",
    ]);
    expect(findings({})).toEqual([]);
  });

  it("says where it read", () => {
    expect(readings(report, en.admin.status)).toBe(
      "430 records of the registry, 852 objects of the bucket, 1 document of the knowledge base",
    );
    expect(readings({}, en.admin.status)).toBe("");
  });
});

it("the status is read less often while nothing changes", () => {
  const pauses = [60];
  for (let turn = 0; turn < 5; turn++) pauses.push(nextPause(pauses[turn] ?? 0, WELL, structuredClone(WELL)));
  expect(pauses).toEqual([60, 120, 240, 480, 600, 600]);
  expect(nextPause(600, WELL, { ...WELL, dead_letters: 1 })).toBe(60);
  expect(nextPause(60, null, WELL)).toBe(60);
});

it("an axis ends at a round number", () => {
  expect([0, 1, 3, 7, 12, 480, 1000].map(axisEnd)).toEqual([1, 1, 5, 10, 20, 500, 1000]);
});
