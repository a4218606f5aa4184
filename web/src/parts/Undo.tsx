/** Actions that wait a few seconds for "Undo" before they are carried out, also if people leave the page. */

import { useEffect } from "react";
import { useMessages } from "../messages";
import { Store, useStore } from "../store";
import { Icon } from "./Icon";
import { Button, IconButton } from "./shapes";

const UNDO_SECONDS = 8;

export interface Undoable {
  id: string;
  /** The documents that it deletes. */
  documents?: readonly string[];
  /** Where the focus goes when it is undone. */
  onUndone?: () => void;
  /** What will happen: "contract.pdf will be deleted". */
  text: string;
  /** `isLeaving`: the page goes away, so the request has to outlive it. */
  run: (isLeaving: boolean) => Promise<void>;
}

type Hold = "pointer" | "focus";

interface Action extends Undoable {
  /** It is being carried out, and can no longer be undone. */
  isRunning: boolean;
}

class Waiting extends Store<readonly Action[]> {
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** Why an action waits on: the pointer is on it, or the focus. */
  private readonly holds = new Map<string, Set<Hold>>();

  constructor() {
    super([]);
    globalThis.addEventListener?.("pagehide", () => {
      for (const action of this.snapshot()) void this.carryOut(action.id, true);
    });
  }

  add(action: Undoable): void {
    if (this.snapshot().some((each) => each.id === action.id)) return;
    this.start(action.id);
    this.set([...this.snapshot(), { ...action, isRunning: false }]);
  }

  /** Wait for as long as somebody may be about to undo it. */
  hold(id: string, why: Hold): void {
    clearTimeout(this.timers.get(id));
    this.holds.set(id, new Set([...(this.holds.get(id) ?? []), why]));
  }

  /** Wait for the whole time again, if nothing else holds it. */
  release(id: string, why: Hold): void {
    const holds = this.holds.get(id);
    if (holds?.delete(why) && holds.size === 0) this.start(id);
  }

  undo(id: string): void {
    const action = this.snapshot().find((each) => each.id === id);
    if (!action || action.isRunning) return;
    this.stop(id);
    this.remove(id);
    if (action.onUndone) action.onUndone();
    else globalThis.document?.getElementById("main")?.focus();
  }

  /** Carry out everything now. */
  async finish(): Promise<void> {
    await Promise.all(this.snapshot().map((action) => this.carryOut(action.id)));
  }

  private async carryOut(id: string, isLeaving = false): Promise<void> {
    const action = this.snapshot().find((each) => each.id === id);
    if (!action || action.isRunning) return;
    this.stop(id);
    this.set(this.snapshot().map((each) => (each === action ? { ...each, isRunning: true } : each)));
    await action.run(isLeaving).finally(() => this.remove(id));
  }

  private start(id: string): void {
    this.timers.set(
      id,
      setTimeout(() => void this.carryOut(id), UNDO_SECONDS * 1000),
    );
  }

  private stop(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.holds.delete(id);
  }

  private remove(id: string): void {
    this.set(this.snapshot().filter((action) => action.id !== id));
  }
}

export const waiting = new Waiting();

/** What went wrong with actions, of which people may have left the page. */
class Problems extends Store<readonly string[]> {
  add(text: string): void {
    this.set([...this.snapshot().filter((each) => each !== text), text]);
  }

  remove(text: string): void {
    this.set(this.snapshot().filter((each) => each !== text));
    document.getElementById("main")?.focus();
  }
}

export const problems = new Problems([]);

export function useWaiting(): readonly Action[] {
  return useStore(waiting);
}

export function UndoBar() {
  const text = useMessages("parts");
  const actions = useWaiting().filter((action) => !action.isRunning);
  const last = actions.at(-1)?.id;
  useEffect(() => {
    if (last === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const isUndo =
        event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      // In a field, the keys undo what was typed.
      if (!isUndo || (event.target as HTMLElement).closest("input:not([type=checkbox]), textarea, dialog"))
        return;
      event.preventDefault();
      waiting.undo(last);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [last]);
  return (
    <div className="undo-bar" role="status">
      {useStore(problems).map((problem) => (
        <p key={problem} className="undo">
          <Icon name="warning" />
          <span dir="auto">{problem}</span>
          <IconButton icon="close" label={text.close} onClick={() => problems.remove(problem)} />
        </p>
      ))}
      {actions.map((action) => (
        <p
          key={action.id}
          className="undo"
          onPointerEnter={() => waiting.hold(action.id, "pointer")}
          onPointerLeave={() => waiting.release(action.id, "pointer")}
          onFocus={() => waiting.hold(action.id, "focus")}
          onBlur={() => waiting.release(action.id, "focus")}
        >
          <span dir="auto">{action.text}</span>
          <Button
            aria-keyshortcuts="Control+Z Meta+Z"
            title={text.undoKeys}
            onClick={() => waiting.undo(action.id)}
          >
            {text.undo}
          </Button>
        </p>
      ))}
    </div>
  );
}
