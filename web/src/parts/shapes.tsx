/** The shapes that every page is made of. */
import { type ComponentProps, type FormEvent, type ReactNode, type Ref, useId } from "react";
import { meaning, type Status } from "../status";
import { place } from "./names";

interface ButtonProps extends ComponentProps<"button"> {
  kind?: "primary" | "danger" | "quiet" | "link" | undefined;
}

/** A button that sends no form, unless its type says so. */
export function Button({ kind, ...others }: ButtonProps) {
  return <button type="button" className={kind} {...others} />;
}

interface BadgeProps {
  kind?: string | undefined;
  children: ReactNode;
}

export function Badge({ kind = "", children }: BadgeProps) {
  return <span className={`badge ${kind}`}>{children}</span>;
}

/** Whether somebody sees a document. */
export function VisibleBadge({ visible }: { visible: boolean }) {
  return <Badge kind={visible ? "good" : "bad"}>{visible ? "visible" : "hidden"}</Badge>;
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
