import { expect, test } from "vitest";
import { type Failed, failureGroups } from "./failures";

function failed(uri: string, reason: string, can_replay: boolean): Failed {
  const advice = can_replay ? "Replay" : "Fix the file";
  const rest = { id: uri, status: "FAILED", attempts: 1, since: "2026-01-01T00:00:00Z", message_ids: [] };
  return { ...rest, uri, reasons: [reason], advice, can_replay };
}

test("a reason is said once for all documents that have it, the most frequent first", () => {
  const groups = failureGroups([
    failed("a", "Throttled", true),
    failed("b", "It has a password", false),
    failed("c", "It has a password", false),
    failed("d", "It has a password", true),
  ]);

  expect(groups.map(({ canReplay, documents }) => [canReplay, documents.map(({ uri }) => uri)])).toEqual([
    [false, ["b", "c"]],
    [true, ["a"]],
    [true, ["d"]],
  ]);
});
