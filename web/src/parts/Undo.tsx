/** Actions that wait a few seconds for "Undo" before they are carried out, also if people leave the page. */
import { useSyncExternalStore } from "react";

const UNDO_SECONDS = 8;

export interface Undoable {
  id: string;
  /** What will happen: "contract.pdf will be deleted". */
  text: string;
  /** `isLeaving`: the page goes away, so the request has to outlive it. */
  run: (isLeaving: boolean) => void;
}

class Waiting {
  private actions: readonly Undoable[] = [];
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  private readonly listeners = new Set<() => void>();

  constructor() {
    globalThis.addEventListener?.("pagehide", () => {
      for (const action of this.actions) this.carryOut(action.id, true);
    });
  }

  readonly snapshot = () => this.actions;
  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  add(action: Undoable): void {
    if (this.timers.has(action.id)) return;
    this.timers.set(
      action.id,
      setTimeout(() => this.carryOut(action.id), UNDO_SECONDS * 1000),
    );
    this.set([...this.actions, action]);
  }

  undo(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.set(this.actions.filter((action) => action.id !== id));
  }

  private carryOut(id: string, isLeaving = false): void {
    const action = this.actions.find((each) => each.id === id);
    this.undo(id);
    action?.run(isLeaving);
  }

  private set(actions: readonly Undoable[]): void {
    this.actions = actions;
    for (const listener of this.listeners) listener();
  }
}

export const waiting = new Waiting();

export function useWaiting(): readonly Undoable[] {
  return useSyncExternalStore(waiting.subscribe, waiting.snapshot);
}

export function UndoBar() {
  const actions = useWaiting();
  return (
    <div className="undo-bar" role="status">
      {actions.map((action) => (
        <p key={action.id} className="undo">
          <span dir="auto">{action.text}</span>
          <button type="button" onClick={() => waiting.undo(action.id)}>
            Undo
          </button>
        </p>
      ))}
    </div>
  );
}
