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

it("waits as long as the pointer or the focus is on it, and then for the whole time again", () => {
  const run = vi.fn(async () => {});
  waiting.add({ id: "held", text: "held will be deleted", run });

  vi.advanceTimersByTime(7000);
  waiting.hold("held", "pointer");
  waiting.hold("held", "focus");
  vi.advanceTimersByTime(60_000);
  waiting.release("held", "pointer");
  vi.advanceTimersByTime(60_000);
  expect(run).not.toHaveBeenCalled();
  waiting.release("held", "focus");
  vi.advanceTimersByTime(7900);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(200);

  expect(run).toHaveBeenCalledOnce();
});

it("says where the focus goes when it is undone, and only once", () => {
  const onUndone = vi.fn();
  waiting.add({ id: "b", text: "b will be deleted", onUndone, run: async () => {} });

  waiting.undo("b");
  waiting.undo("b");

  expect(onUndone).toHaveBeenCalledOnce();
});
