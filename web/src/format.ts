/** Numbers, durations and times as people read them, in the chosen language. */
import { locale } from "./messages";

type Options = Intl.NumberFormatOptions;

/** To make a format takes longer than to use it, and lists have thousands of numbers. */
const formats = new Map<string, Intl.NumberFormat>();

export function number(value: number, options: Options = {}): string {
  const key = JSON.stringify([locale(), options]);
  const known = formats.get(key) ?? new Intl.NumberFormat(locale(), options);
  formats.set(key, known);
  return known.format(value);
}

/** For texts that are not in the messages yet. */
export function count(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function percent(share: number | null | undefined): string {
  return isKnown(share) ? number(share, { style: "percent" }) : "–";
}

/** A duration in one unit, rounded to about two digits. */
export function duration(seconds: number | null | undefined): string {
  if (!isKnown(seconds)) return "–";
  if (seconds > 0 && seconds < 0.9995) return `${number(Math.round(seconds * 1000))} ms`;
  if (seconds < 90) return `${number(seconds, { maximumFractionDigits: 1 })} s`;
  if (seconds < 5400) return `${number(Math.round(seconds / 60))} min`;
  if (seconds < 129_600) return `${number(Math.round(seconds / 3600))} h`;
  return number(Math.round(seconds / 86_400), { style: "unit", unit: "day", unitDisplay: "long" });
}

export function milliseconds(value: number): string {
  return duration(value / 1000);
}

export function bytes(value: number | null | undefined): string {
  if (!isKnown(value)) return "–";
  const [size, unit] = value < 1000 ? [value, "B"] : value < 1e6 ? [value / 1e3, "kB"] : [value / 1e6, "MB"];
  const digits = size < 10 && unit !== "B" ? 1 : 0;
  return `${number(size, { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

let times: { locale: string; format: Intl.DateTimeFormat } | null = null;

export function time(iso: string | null | undefined): string {
  if (!iso) return "–";
  if (times?.locale !== locale())
    times = {
      locale: locale(),
      format: new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }),
    };
  return times.format.format(new Date(iso));
}

/** The time of day. */
export function clock(when: string | Date): string {
  return new Intl.DateTimeFormat(locale(), { timeStyle: "short" }).format(new Date(when));
}

const DAY_SECONDS = 86_400;
let relative: { locale: string; format: Intl.RelativeTimeFormat; day: Intl.DateTimeFormat } | null = null;

/** How long ago something was; the day after a week. */
export function ago(iso: string | null | undefined, now = Date.now()): string {
  if (!iso) return "–";
  if (relative?.locale !== locale())
    relative = {
      locale: locale(),
      format: new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" }),
      day: new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }),
    };
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (seconds < 60) return relative.format.format(0, "second");
  if (seconds < 3600) return relative.format.format(-Math.floor(seconds / 60), "minute");
  if (seconds < DAY_SECONDS) return relative.format.format(-Math.floor(seconds / 3600), "hour");
  if (seconds < 7 * DAY_SECONDS) return relative.format.format(-Math.floor(seconds / DAY_SECONDS), "day");
  return relative.day.format(new Date(iso));
}

/** A figure as people compare it: two digits that matter. */
export function figure(value: number): string {
  const digits = value === 0 ? 0 : Math.abs(value) >= 0.0995 ? 2 : 3;
  return number(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function isKnown<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
