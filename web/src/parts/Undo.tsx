/** Actions that wait a few seconds for "Undo" before they are carried out, also if people leave the page. */

import { useSyncExternalStore } from "react";
import { Button } from "./shapes";

const UNDO_SECONDS = 8;

interface Undoable {
  id: string;
  /** What will happen: "contract.pdf will be deleted". */
  text: string;
  /** `isLeaving`: the page goes away, so the request has to outlive it. */
  run: (isLeaving: boolean) => Promise<void>;
}

interface Action extends Undoable {
  /** It is being carried out, and can no longer be undone. */
  isRunning: boolean;
}

class Waiting {
  private actions: readonly Action[] = [];
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  private readonly listeners = new Set<() => void>();

  constructor() {
    globalThis.addEventListener?.("pagehide", () => {
      for (const action of this.actions) void this.carryOut(action.id, true);
    });
  }

  readonly snapshot = () => this.actions;
  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  add(action: Undoable): void {
    if (this.actions.some((each) => each.id === action.id)) return;
    this.timers.set(
      action.id,
      setTimeout(() => void this.carryOut(action.id), UNDO_SECONDS * 1000),
    );
    this.set([...this.actions, { ...action, isRunning: false }]);
  }

  undo(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.remove(id);
  }

  /** Carry out everything now. */
  async finish(): Promise<void> {
    await Promise.all(this.actions.map((action) => this.carryOut(action.id)));
  }

  private async carryOut(id: string, isLeaving = false): Promise<void> {
    const action = this.actions.find((each) => each.id === id);
    if (!action || action.isRunning) return;
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.set(this.actions.map((each) => (each === action ? { ...each, isRunning: true } : each)));
    await action.run(isLeaving).finally(() => this.remove(id));
  }

  private remove(id: string): void {
    this.set(this.actions.filter((action) => action.id !== id));
  }

  private set(actions: readonly Action[]): void {
    this.actions = actions;
    for (const listener of this.listeners) listener();
  }
}

export const waiting = new Waiting();

export function useWaiting(): readonly Action[] {
  return useSyncExternalStore(waiting.subscribe, waiting.snapshot);
}

export function UndoBar() {
  const actions = useWaiting().filter((action) => !action.isRunning);
  return (
    <div className="undo-bar" role="status">
      {actions.map((action) => (
        <p key={action.id} className="undo">
          <span dir="auto">{action.text}</span>
          <Button onClick={() => waiting.undo(action.id)}>Undo</Button>
        </p>
      ))}
    </div>
  );
}
