import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { waiting } from "./Undo";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("carries an action out after some seconds, and shows it until it has ended", async () => {
  let end = () => {};
  const run = vi.fn(() => new Promise<void>((done) => (end = done)));
  waiting.add({ id: "a", text: "a will be deleted", run });

  vi.advanceTimersByTime(7900);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(200);

  expect(run).toHaveBeenCalledExactlyOnceWith(false);
  expect(waiting.snapshot()).toMatchObject([{ id: "a", isRunning: true }]);
  end();
  await vi.runAllTimersAsync();
  expect(waiting.snapshot()).toEqual([]);
});

it("does not carry out what was undone", () => {
  const run = vi.fn(async () => {});
  waiting.add({ id: "a", text: "a will be deleted", run });

  waiting.undo("a");
  vi.advanceTimersByTime(60_000);

  expect(run).not.toHaveBeenCalled();
  expect(waiting.snapshot()).toEqual([]);
});
