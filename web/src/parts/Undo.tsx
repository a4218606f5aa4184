/** Actions that wait a few seconds for "Undo" before they are carried out, also if people leave the page. */

import { useMessages } from "../messages";
import { Store, useStore } from "../store";
import { Button } from "./shapes";

const UNDO_SECONDS = 8;

export interface Undoable {
  id: string;
  /** The documents that it concerns, if its id is not that of the only one. */
  documents?: readonly string[];
  /** Where the focus goes when it is undone. */
  onUndone?: () => void;
  /** What will happen: "contract.pdf will be deleted". */
  text: string;
  /** `isLeaving`: the page goes away, so the request has to outlive it. */
  run: (isLeaving: boolean) => Promise<void>;
}

interface Action extends Undoable {
  /** It is being carried out, and can no longer be undone. */
  isRunning: boolean;
}

class Waiting extends Store<readonly Action[]> {
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor() {
    super([]);
    globalThis.addEventListener?.("pagehide", () => {
      for (const action of this.snapshot()) void this.carryOut(action.id, true);
    });
  }

  add(action: Undoable): void {
    if (this.snapshot().some((each) => each.id === action.id)) return;
    this.timers.set(
      action.id,
      setTimeout(() => void this.carryOut(action.id), UNDO_SECONDS * 1000),
    );
    this.set([...this.snapshot(), { ...action, isRunning: false }]);
  }

  undo(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.remove(id);
  }

  /** Carry out everything now. */
  async finish(): Promise<void> {
    await Promise.all(this.snapshot().map((action) => this.carryOut(action.id)));
  }

  private async carryOut(id: string, isLeaving = false): Promise<void> {
    const action = this.snapshot().find((each) => each.id === id);
    if (!action || action.isRunning) return;
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.set(this.snapshot().map((each) => (each === action ? { ...each, isRunning: true } : each)));
    await action.run(isLeaving).finally(() => this.remove(id));
  }

  private remove(id: string): void {
    this.set(this.snapshot().filter((action) => action.id !== id));
  }
}

export const waiting = new Waiting();

export function useWaiting(): readonly Action[] {
  return useStore(waiting);
}

export function UndoBar() {
  const text = useMessages("parts");
  const actions = useWaiting().filter((action) => !action.isRunning);
  return (
    <div className="undo-bar" role="status">
      {actions.map((action) => (
        <p key={action.id} className="undo">
          <span dir="auto">{action.text}</span>
          <Button
            onClick={() => {
              waiting.undo(action.id);
              if (action.onUndone) action.onUndone();
              else document.getElementById("main")?.focus();
            }}
          >
            {text.undo}
          </Button>
        </p>
      ))}
    </div>
  );
}
