import { type ReactNode, useEffect, useId, useRef } from "react";
import { useAction } from "../context";
import { useMessages } from "../messages";
import { Button, IconButton } from "./shapes";
import { ErrorBox } from "./states";

interface DialogProps {
  title: ReactNode;
  className: string;
  /** Whether only screen readers read the title. */
  isTitleHidden?: boolean;
  onClose: () => void;
  /** What stands next to the title; closing gives the focus back to where it was. */
  aside?: (close: () => void) => ReactNode;
  children: (close: () => void) => ReactNode;
}

/** A dialog that is open as long as it is there. */
export function Dialog({ title, className, isTitleHidden, onClose, aside, children }: DialogProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  return (
    <dialog ref={dialog} className={className} onClose={onClose} aria-labelledby={id}>
      <div className="stack">
        <div className={isTitleHidden ? "visually-hidden" : "row spread"}>
          <h2 id={id} dir="auto">
            {title}
          </h2>
          {aside?.(close)}
        </div>
        {children(close)}
      </div>
    </dialog>
  );
}

interface SheetProps extends Omit<DialogProps, "className" | "aside" | "isTitleHidden"> {
  /** Whether it takes half of a wide window, for what is read. */
  isWide?: boolean;
}

/** A dialog at the side of the window, or all of a phone: for work that belongs to what is behind it. */
export function Sheet({ isWide, ...others }: SheetProps) {
  const text = useMessages("parts");
  return (
    <Dialog
      {...others}
      className={`sheet ${isWide ? "wide" : ""}`}
      aside={(close) => <IconButton icon="close" label={text.close} onClick={close} />}
    />
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  isDangerous: boolean;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before something that has consequences; closes when it is done. */
export function Confirm({ title, action, isDangerous, onConfirm, onClose, children }: ConfirmProps) {
  const text = useMessages("parts");
  const { run, isRunning, error } = useAction();
  return (
    <Dialog title={title} className="confirm" onClose={onClose}>
      {(close) => (
        <>
          {children}
          {error && <ErrorBox error={error} />}
          <div className="row">
            <Button
              kind={isDangerous ? "danger" : "primary"}
              disabled={isRunning}
              onClick={() => run(() => onConfirm().then(close))}
            >
              {action}
            </Button>
            <Button onClick={close}>{text.cancel}</Button>
          </div>
        </>
      )}
    </Dialog>
  );
}
