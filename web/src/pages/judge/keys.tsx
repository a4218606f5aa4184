/** Single keys. They act only while no text field has the focus, and people can turn them off (WCAG 2.1.4). */

import { useEffect, useRef, useState } from "react";
import { useMessages } from "../../messages";
import { Dialog } from "../../parts/Dialog";
import { Checkbox } from "../../parts/fields";
import { Button } from "../../parts/shapes";

type Keys = Record<string, () => void>;

/** A setting of the browser and its keyboard, for everybody who uses them. It tells nothing about a person. */
const SETTING = "ragstack.keys";

export function areKeysOn(storage: Storage = localStorage): boolean {
  return storage.getItem(SETTING) !== "off";
}

export function setKeysOn(on: boolean, storage: Storage = localStorage): void {
  if (on) storage.removeItem(SETTING);
  else storage.setItem(SETTING, "off");
}

/** Whether an event belongs to a field, a dialog or a shortcut of the browser. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey)
    return true;
  const target = event.target as Element | null;
  return Boolean(target?.closest("input, textarea, select, [contenteditable], dialog"));
}

export function useKeys(keys: Keys): { areOn: boolean; setOn: (on: boolean) => void } {
  const [areOn, setAreOn] = useState(() => areKeysOn());
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    if (!areOn) return;
    const listen = (event: KeyboardEvent) => {
      const act = isTaken(event) ? undefined : current.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [areOn]);
  const setOn = (on: boolean) => {
    setAreOn(on);
    setKeysOn(on);
  };
  return { areOn, setOn };
}

interface HelpProps {
  keys: readonly (readonly [key: string, meaning: string])[];
  areOn: boolean;
  setOn: (on: boolean) => void;
  isOpen: boolean;
  setOpen: (open: boolean) => void;
}

export function KeysHelp({ keys, areOn, setOn, isOpen, setOpen }: HelpProps) {
  const text = useMessages("quality");
  const parts = useMessages("parts");
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        {areOn ? text.keys : text.keysOff} <kbd>?</kbd>
      </Button>
      {isOpen && (
        <Dialog title={text.keys} className="keys-help" onClose={() => setOpen(false)}>
          {(close) => (
            <>
              <dl>
                {keys.map(([key, meaning]) => (
                  <div key={key}>
                    <dt>
                      {key.split(" ").map((part) => (
                        <kbd key={part}>{part}</kbd>
                      ))}
                    </dt>
                    <dd>{meaning}</dd>
                  </div>
                ))}
              </dl>
              <Checkbox checked={areOn} onChange={setOn}>
                {text.keysAct}
              </Checkbox>
              <p className="small">{text.keysHint}</p>
              <div>
                <Button kind="primary" onClick={close}>
                  {parts.close}
                </Button>
              </div>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}
