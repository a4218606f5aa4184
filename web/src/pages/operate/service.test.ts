import { describe, expect, it } from "vitest";
import { axisEnd, nextPause, problems, quietAlarms, type ServiceStatus, wordSearch } from "./service";

const WELL: ServiceStatus = {
  documents: { INDEXED: 12, FAILED: 0 },
  queues: [],
  dead_letters: 0,
  alarms: [{ name: "Errors", state: "OK", reason: "", since: "2026-01-01T00:00:00Z" }],
  last_reconciliation: null,
  throughput: [],
  notes: [],
};

describe("quietAlarms", () => {
  const silent = {
    name: "Late",
    state: "INSUFFICIENT_DATA",
    reason: "",
    since: "2026-01-01T00:00:00Z",
  } as const;

  it("are good only if every alarm has data", () => {
    expect(quietAlarms(WELL)).toEqual({ text: "No alarm fires.", isGood: true });
    expect(quietAlarms({ ...WELL, alarms: [...(WELL.alarms ?? []), silent] })).toEqual({
      text: "No alarm fires; 1 of 2 have no data.",
      isGood: false,
    });
    expect(quietAlarms({ ...WELL, alarms: null }).isGood).toBe(false);
  });
});

describe("problems", () => {
  it("are none if all is well", () => {
    expect(problems(WELL)).toEqual([]);
    expect(problems({ ...WELL, alarms: null })).toEqual([]);
  });

  it("name alarms, dead letters and failed documents", () => {
    const status: ServiceStatus = {
      ...WELL,
      alarms: [{ name: "Errors", state: "ALARM", reason: "5 errors", since: "2026-01-01T00:00:00Z" }],
      dead_letters: 1,
      documents: { FAILED: 1200 },
    };

    expect(problems(status)).toEqual([
      "Alarm: Errors",
      "1 dead letter waits for a decision",
      `${(1200).toLocaleString()} documents failed`,
    ]);
  });
});

it("the status is read less often while nothing changes", () => {
  const pauses = [30];
  for (let turn = 0; turn < 5; turn++) pauses.push(nextPause(pauses[turn] ?? 0, WELL, structuredClone(WELL)));
  expect(pauses).toEqual([30, 60, 120, 240, 300, 300]);
  expect(nextPause(300, WELL, { ...WELL, dead_letters: 1 })).toBe(30);
  expect(nextPause(30, null, WELL)).toBe(30);
});

it("what a search finds is said in words", () => {
  const types = ["HYBRID", "SEMANTIC", null] as const;
  expect(types.map((type) => wordSearch(type).title)).toEqual([
    "words and meanings",
    "meanings only",
    "not known",
  ]);
});

it("an axis ends at a round number", () => {
  expect([0, 1, 3, 7, 12, 480, 1000].map(axisEnd)).toEqual([1, 1, 5, 10, 20, 500, 1000]);
});
