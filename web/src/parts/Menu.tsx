/** A button with what it opens: above everything, closed by Escape, by a click elsewhere and by leaving it. */
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Button } from "./shapes";

interface Props {
  /** What the button shows. */
  button: ReactNode;
  /** Its name, if it shows none, or another one. */
  label?: string;
  kind?: "quiet" | "icon" | "primary";
  className?: string;
  isDisabled?: boolean;
  onOpen?: () => void;
  /** The content, which can close it. */
  children: ReactNode | ((close: () => void) => ReactNode);
}

const GAP_PIXELS = 6;
const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']";

export function Menu({ button, label, kind, className = "", isDisabled, onOpen, children }: Props) {
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = () => panel.current?.hidePopover();

  useEffect(() => {
    if (!isOpen) return;
    const follow = () => opener.current && panel.current && place(panel.current, opener.current);
    follow();
    panel.current?.querySelector<HTMLElement>(`[data-autofocus], ${FOCUSABLE}`)?.focus();
    addEventListener("resize", follow);
    addEventListener("scroll", follow, true);
    return () => {
      removeEventListener("resize", follow);
      removeEventListener("scroll", follow, true);
    };
  }, [isOpen]);

  return (
    <span className={`menu-place ${className}`}>
      <Button
        ref={opener}
        kind={kind}
        aria-label={label}
        title={kind === "icon" ? label : undefined}
        aria-expanded={isOpen}
        disabled={isDisabled}
        popoverTarget={id}
      >
        {button}
      </Button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys move between the controls inside */}
      <div
        id={id}
        ref={panel}
        className="menu"
        popover="auto"
        onToggle={(event) => {
          setOpen(event.newState === "open");
          if (event.newState === "open") onOpen?.();
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step === undefined || (event.target as Element).matches("input, select, textarea")) return;
          event.preventDefault();
          const all = [...event.currentTarget.querySelectorAll<HTMLElement>(FOCUSABLE)];
          const at = all.indexOf(document.activeElement as HTMLElement);
          all.at((at + step) % all.length)?.focus();
        }}
        onBlur={(event) => {
          const next = event.relatedTarget as Node | null;
          if (next && !event.currentTarget.contains(next) && next !== opener.current) close();
        }}
      >
        {isOpen && (typeof children === "function" ? children(close) : children)}
      </div>
    </span>
  );
}

/** Below the button, or above it if there is more room, and inside the window. */
function place(panel: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const size = panel.getBoundingClientRect();
  const isRightToLeft = getComputedStyle(button).direction === "rtl";
  const below = innerHeight - at.bottom - GAP_PIXELS;
  const above = at.top - GAP_PIXELS;
  const isBelow = size.height <= below || below >= above;
  const room = document.documentElement.clientWidth - size.width - GAP_PIXELS;
  const start = isRightToLeft || at.left + size.width > document.documentElement.clientWidth;
  const left = Math.max(GAP_PIXELS, Math.min(start ? at.right - size.width : at.left, room));
  panel.style.left = `${left}px`;
  panel.style.maxHeight = `${Math.max(isBelow ? below : above, 120) - GAP_PIXELS}px`;
  if (isBelow) {
    panel.style.top = `${at.bottom + GAP_PIXELS}px`;
    panel.style.bottom = "auto";
  } else {
    panel.style.top = "auto";
    panel.style.bottom = `${innerHeight - at.top + GAP_PIXELS}px`;
  }
}

interface ItemProps {
  icon?: ReactNode;
  isDangerous?: boolean;
  /** For a choice among several. */
  isChosen?: boolean;
  onClick: () => void;
  children: ReactNode;
}

/** One line of a menu. */
export function MenuItem({ icon, isDangerous = false, isChosen, onClick, children }: ItemProps) {
  return (
    <Button className={`menu-item ${isDangerous ? "danger" : ""}`} aria-pressed={isChosen} onClick={onClick}>
      {icon}
      <span className="grow">{children}</span>
    </Button>
  );
}
