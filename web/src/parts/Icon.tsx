import { ICONS } from "./icons";

export type IconName = keyof typeof ICONS;

interface Props {
  name: IconName;
  /** In pixels. */
  size?: number;
  className?: string;
}

/** A stroke icon in the colour of the text around it. It says nothing to screen readers: the control has a name. */
export function Icon({ name, size = 18, className = "" }: Props) {
  return (
    <svg
      className={`icon ${className}`}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {ICONS[name]}
    </svg>
  );
}

/** The mark of the product: passages, one of them found. The favicon shows the same. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg className="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M9 10h14M9 22h9" />
      <path className="found" d="M9 16h11" />
    </svg>
  );
}
