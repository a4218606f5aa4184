import { type ReactNode, useEffect, useRef } from "react";

interface Props {
  title: string;
  action: string;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, action, onConfirm, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="confirm" onClose={onClose} aria-labelledby="confirm-title">
      <div className="stack">
        <h2 id="confirm-title">{title}</h2>
        {children}
        <div className="row">
          <button
            type="button"
            className="danger"
            onClick={() => {
              onConfirm();
              dialog.current?.close();
            }}
          >
            {action}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </div>
    </dialog>
  );
}
