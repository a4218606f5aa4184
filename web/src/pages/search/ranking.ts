/** How a result came to its place, as figures and bars show it. */
import type { RetrievedResult, RetrieveResponse, SliceReport } from "../../api/types";
import { isKnown } from "../../format";
import { messages } from "../../messages";

/** A part of a score. */
export interface Part {
  name: string;
  value: number;
}

/** The place of a result in one of the searches whose rankings were merged. */
interface SlicePlace {
  name: string;
  /** From 1; null if this search did not find the result. */
  rank: number | null;
  hits: number | null;
  trust: number | null;
}

/** A difference that is only rounding. */
const ROUNDING = 1e-4;

export function sliceName(slice: string): string {
  return messages("search").slices[slice] ?? slice;
}

/** A name within a sentence. */
export function within(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** The name of one of the parallel searches: people, with the filter. */
export function reportName(report: SliceReport): string {
  const where = whereName(report);
  if (!report.slice) return where || messages("search").theSearch;
  const name = sliceName(report.slice);
  return where ? `${where}, ${within(name)}` : name;
}

/** What one of the parallel searches searched; empty if there was no choice. */
export function whereName({ backend, corpus }: SliceReport): string {
  return [backend, corpus && (corpus === "all" ? messages("search").everything : corpus)]
    .filter(Boolean)
    .join(", ");
}

/** Searches with the same filter in several collections or backends. */
export interface SliceGroup {
  name: string;
  /** Whether the group has a line of its own: if it has several searches. */
  isNamed: boolean;
  /** Why the filter is trusted as far as it is. */
  reason: string | null;
  reports: SliceReport[];
}

export function groups(reports: readonly SliceReport[]): SliceGroup[] {
  const found = new Map<string, SliceReport[]>();
  for (const report of reports) {
    const slice = report.slice ?? "";
    found.set(slice, [...(found.get(slice) ?? []), report]);
  }
  const isNamed = [...found.keys()].every((slice) => slice !== "") && found.size < reports.length;
  return [...found].map(([slice, members]) => ({
    name: sliceName(slice),
    isNamed,
    reason: members.map((report) => report.reason).find(isKnown) ?? null,
    reports: members,
  }));
}

/** The parts that add up to the score. */
export function parts(result: RetrievedResult): Part[] {
  const text = messages("search");
  const { ranking, score } = result;
  const contributions = Object.entries(ranking?.contributions ?? {}).filter(([, value]) => value > 0);
  if (!ranking || contributions.length === 0) {
    const base = Math.min(ranking?.base_score ?? score, score);
    const boost = score - base;
    return [
      { name: text.engineScore, value: base },
      ...(boost > ROUNDING ? [{ name: text.boostOfFilter, value: boost }] : []),
    ];
  }
  const known = contributions.map(([name, value]) => ({ name: partName(name), value }));
  known.sort((a, b) => b.value - a.value);
  const rest = score - known.reduce((sum, part) => sum + part.value, 0);
  return rest > ROUNDING ? [...known, { name: text.other, value: rest }] : known;
}

function partName(name: string): string {
  const slice = messages("search").slices[name];
  return slice ? within(slice) : name;
}

/** The names of all parts of all results in one order, so that a part has the same colour everywhere. */
export function partNames(results: readonly RetrievedResult[]): string[] {
  return [...new Set(results.flatMap((result) => parts(result).map((part) => part.name)))];
}

/** The places of a result in the merged searches; empty if there was only one. */
export function slicePlaces(result: RetrievedResult, response: RetrieveResponse): SlicePlace[] {
  const ranks = result.ranking?.ranks ?? {};
  if (Object.keys(ranks).length === 0) return [];
  const by = response.slices.some((report) => report.slice && report.slice in ranks) ? "slice" : "backend";
  const own = response.slices.filter(
    (report) => report.corpus === null || result.ranking?.found_by?.includes(report.corpus),
  );
  const names = new Set([
    ...Object.keys(ranks),
    ...own.filter((report) => report.status === "ok").flatMap((report) => report[by] ?? []),
  ]);
  return [...names].map((name) => {
    const reports = own.filter((report) => report[by] === name);
    return {
      name: sliceName(name),
      rank: ranks[name] ?? null,
      hits: reports.length > 0 ? Math.max(...reports.map((report) => report.hits ?? 0)) : null,
      trust: reports.find((report) => report.trust !== null)?.trust ?? null,
    };
  });
}

/** What is missing from an incomplete response, in sentences. */
export function missingParts(response: RetrieveResponse): string[] {
  return response.slices
    .filter((report) => report.status !== "ok")
    .map((report) => {
      const text = messages("search");
      const say = report.status === "timeout" ? text.latePart : text.failedPart;
      return say(reportName(report), report.error ?? "");
    });
}
