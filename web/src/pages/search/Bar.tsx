/** A bar next to the figure that it draws; screen readers read the figure. */
interface Props {
  /** 0 to 1; what is outside is cut. */
  share: number;
  kind?: "measure" | "time" | "total" | "late" | "rank";
}

export function Bar({ share, kind = "measure" }: Props) {
  return (
    <span className="bar" aria-hidden="true">
      <span className={kind} style={{ width: width(share) }} />
    </span>
  );
}

interface StackedProps {
  parts: readonly { name: string; value: number }[];
  /** The value of a full bar. */
  scale: number;
  /** All names; the place of a name decides its colour. */
  names: readonly string[];
}

/** Parts one after another: as long as their sum. */
export function StackedBar({ parts, scale, names }: StackedProps) {
  return (
    <span className="bar stacked" aria-hidden="true">
      {parts.map((part) => (
        <span
          key={part.name}
          className={partClass(part.name, names)}
          style={{ width: width(part.value / scale) }}
        />
      ))}
    </span>
  );
}

const COLOURS = 6;

export function partClass(name: string, names: readonly string[]): string {
  return `part-${Math.max(0, names.indexOf(name)) % COLOURS}`;
}

function width(share: number): string {
  return `${Math.max(0, Math.min(1, share)) * 100}%`;
}
