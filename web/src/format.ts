/** Numbers, durations and times as people read them. */

export function count(number: number, noun: string): string {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`;
}

/** A duration in one unit, rounded to about two digits. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds > 0 && seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export function milliseconds(value: number): string {
  return duration(value / 1000);
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const [size, unit] = value < 1000 ? [value, "B"] : value < 1e6 ? [value / 1e3, "kB"] : [value / 1e6, "MB"];
  return `${size < 10 && unit !== "B" ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

const TIMES = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

export function time(iso: string | null | undefined): string {
  return iso ? TIMES.format(new Date(iso)) : "–";
}

/** A figure as people compare it: two digits that matter. */
export function figure(value: number): string {
  return value === 0 ? "0" : value.toFixed(Math.abs(value) >= 0.0995 ? 2 : 3);
}

export function isKnown<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
