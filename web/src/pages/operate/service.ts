/** The state of the service, as GET /api/status reports it. */

import type { components } from "../../api/schema";
import { count } from "../../format";

export type ServiceStatus = components["schemas"]["StatusReport"];
export type Hour = components["schemas"]["HourlyThroughput"];

/** What the alarms say while none fires. An alarm without data has not judged anything. */
export function quietAlarms({ alarms }: ServiceStatus): { text: string; isGood: boolean } {
  if (alarms === null) return { text: "The alarms are not known.", isGood: false };
  const silent = alarms.filter((alarm) => alarm.state === "INSUFFICIENT_DATA").length;
  if (silent === 0) return { text: "No alarm fires.", isGood: true };
  return { text: `No alarm fires; ${silent} of ${alarms.length} have no data.`, isGood: false };
}

/** What needs attention, most urgent first. */
export function problems(status: ServiceStatus): string[] {
  const failed = status.documents.FAILED ?? 0;
  const ringing = (status.alarms ?? []).filter((alarm) => alarm.state === "ALARM");
  const job = status.last_reconciliation;
  return [
    ...ringing.map((alarm) => `Alarm: ${alarm.name}`),
    status.dead_letters > 0 &&
      `${count(status.dead_letters, "dead letter")} ${status.dead_letters === 1 ? "waits" : "wait"} for a decision`,
    failed > 0 && `${count(failed, "document")} failed`,
    (job?.status === "FAILED" || job?.status === "INCOMPLETE") &&
      `The last reconciliation is ${job.status.toLowerCase()}`,
  ].filter((each) => each !== false);
}

/** The largest value of an axis: 1, 2 or 5 times a power of ten. */
export function axisEnd(largest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(largest, 1)));
  return ([1, 2, 5].find((step) => step * power >= largest) ?? 10) * power;
}

/** What a search finds. */
export function wordSearch(searchType: "HYBRID" | "SEMANTIC" | null): { title: string; isGood: boolean } {
  if (searchType === null) return { title: "not known", isGood: false };
  return searchType === "HYBRID"
    ? { title: "words and meanings", isGood: true }
    : { title: "meanings only", isGood: false };
}

export const SHORTEST_PAUSE = 30;
const LONGEST_PAUSE = 300;

/** Seconds until the status is read again: twice as long after each time that nothing changed. */
export function nextPause(seconds: number, before: ServiceStatus | null, now: ServiceStatus): number {
  if (before === null || JSON.stringify(before) !== JSON.stringify(now)) return SHORTEST_PAUSE;
  return Math.min(LONGEST_PAUSE, 2 * seconds);
}
