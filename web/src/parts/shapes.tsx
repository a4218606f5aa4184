/** The shapes that every page is made of. */
import { type ComponentProps, type FormEvent, type ReactNode, type Ref, useId } from "react";
import { useMessages } from "../messages";
import { meaning, type Status } from "../status";
import { Icon, type IconName } from "./Icon";
import { place } from "./names";

interface ButtonProps extends ComponentProps<"button"> {
  kind?: "primary" | "danger" | "quiet" | "icon" | "link" | undefined;
}

/** A button that sends no form, unless its type says so. */
export function Button({ kind, ...others }: ButtonProps) {
  return <button type="button" className={kind} {...others} />;
}

interface IconButtonProps extends Omit<ButtonProps, "kind" | "children"> {
  icon: IconName;
  /** What it does; shown to those who point at it. */
  label: string;
}

/** A button that shows only an icon. */
export function IconButton({ icon, label, ...others }: IconButtonProps) {
  return (
    <Button kind="icon" aria-label={label} title={label} {...others}>
      <Icon name={icon} />
    </Button>
  );
}

interface BadgeProps {
  kind?: string | undefined;
  children: ReactNode;
}

export function Badge({ kind = "", children }: BadgeProps) {
  return <span className={`badge ${kind}`}>{children}</span>;
}

interface ChipProps {
  icon?: IconName;
  /** Shown to those who point at it: why it is there. */
  title?: string | undefined;
  /** What the button does that removes it. */
  removeLabel?: string;
  onRemove?: (() => void) | undefined;
  children: ReactNode;
}

/** A choice that is in effect, such as a filter, which can be removed. */
export function Chip({ icon, title, removeLabel = "", onRemove, children }: ChipProps) {
  return (
    <span className="chip" title={title}>
      {icon && <Icon name={icon} size={14} />}
      <span dir="auto">{children}</span>
      {onRemove && <IconButton icon="close" label={removeLabel} onClick={onRemove} />}
    </span>
  );
}

/** How sure something is, in three bars and in words. */
export function Bars({ level, children }: { level: 1 | 2 | 3; children: ReactNode }) {
  return (
    <span className={`bars level-${level}`}>
      <svg width="16" height="14" viewBox="0 0 16 14" aria-hidden="true">
        {[1, 2, 3].map((each) => (
          <rect
            key={each}
            className={each <= level ? "full" : ""}
            x={(each - 1) * 6}
            y={14 - each * 4 - 2}
            width="4"
            height={each * 4 + 2}
            rx="1"
          />
        ))}
      </svg>
      {children}
    </span>
  );
}

/** Where text will be, while it loads. What loads is announced by `Loading`, or by a region that is busy. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <span className="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </span>
  );
}

/** A text for people who use a screen reader. */
export function Hidden({ children }: { children: ReactNode }) {
  return <span className="visually-hidden">{children}</span>;
}

/** Whether somebody sees a document. */
export function VisibleBadge({ visible }: { visible: boolean }) {
  const text = useMessages("parts");
  return <Badge kind={visible ? "good" : "bad"}>{visible ? text.visible : text.hidden}</Badge>;
}

export function StatusBadge({ status }: { status: Status }) {
  const { label, badge } = meaning(status);
  return <Badge kind={badge}>{label}</Badge>;
}

interface FormProps extends Omit<ComponentProps<"form">, "onSubmit"> {
  onSubmit: () => void;
}

export function Form({ onSubmit, ...others }: FormProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return <form {...others} onSubmit={submit} />;
}

interface CardProps {
  title: ReactNode;
  level?: 2 | 3;
  /** What stands next to the title. */
  aside?: ReactNode;
  className?: string;
  /** Whether it scrolls, so that the keyboard needs to reach it. */
  isScrolling?: boolean;
  /** For a section that takes the focus when something leads to it. */
  ref?: Ref<HTMLElement>;
  onSubmit?: () => void;
  children: ReactNode;
}

/** A section of a page with its title; with `onSubmit`, a form. */
export function Card({
  title,
  level = 2,
  aside,
  className = "",
  isScrolling,
  ref,
  onSubmit,
  children,
}: CardProps) {
  const id = useId();
  const Title = level === 2 ? "h2" : "h3";
  const own = {
    className: `card stack ${isScrolling ? "scroll" : ""} ${className}`,
    "aria-labelledby": id,
    children: (
      <>
        <div className="row spread">
          <Title id={id} dir="auto">
            {title}
          </Title>
          {aside}
        </div>
        {children}
      </>
    ),
  };
  if (onSubmit) return <Form {...own} onSubmit={onSubmit} />;
  return <section {...own} ref={ref} tabIndex={isScrolling ? 0 : ref ? -1 : undefined} />;
}

interface ScrollingProps extends ComponentProps<"section"> {
  label: string;
}

/** A region that scrolls. */
export function Scrolling({ label, className = "scroll", ...others }: ScrollingProps) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
  return <section className={className} tabIndex={0} aria-label={label} {...others} />;
}

/** Where in its document a passage is; nothing if that is not known. */
export function Where({ of }: { of: Parameters<typeof place>[0] }) {
  const text = place(of);
  if (!text) return null;
  return (
    <p className="small" dir="auto">
      {text}
    </p>
  );
}
