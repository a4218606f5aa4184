/** The state of the service, as GET /api/status reports it, in words. */

import type { components } from "../../api/schema";
import { type Messages, messages } from "../../messages";
import { address } from "../../route";

export type ServiceStatus = components["schemas"]["StatusReport"];
export type Hour = components["schemas"]["HourlyThroughput"];
type Report = Record<string, unknown>;

/** The name of the queue of messages that need a decision. */
export const DECISIONS = "dead letters";
export const TO_DECIDE = address("documents", { tab: "failures" });
export const JOBS = address("documents", { tab: "jobs" });

interface Problem {
  text: string;
  /** Where people do something about it. */
  href?: string;
}

/** What needs attention, most urgent first. */
export function problems(status: ServiceStatus): Problem[] {
  const text = messages("admin").status;
  const failed = status.documents.FAILED ?? 0;
  const job = status.last_reconciliation?.status;
  return [
    ...firing(status).map((alarm) => ({ text: text.alarm(headline(alarm)) })),
    status.dead_letters > 0 && { text: text.waitForDecision(status.dead_letters), href: TO_DECIDE },
    failed > 0 && { text: text.failedDocuments(failed), href: address("documents", { status: "FAILED" }) },
    job === "FAILED" && { text: text.reconciliationFailed, href: JOBS },
    job === "INCOMPLETE" && { text: text.reconciliationIncomplete, href: JOBS },
  ].filter((each) => each !== false);
}

/** What an alarm says, without what to do about it. */
function headline({ name, reason }: NonNullable<ServiceStatus["alarms"]>[number]): string {
  return reason.split(/[:.](?=\s|$)/)[0] || name;
}

export function firing({ alarms }: ServiceStatus) {
  return (alarms ?? []).filter(({ state }) => state === "ALARM");
}

/** The alarms that have judged nothing, because they have no data. */
export function silent({ alarms }: ServiceStatus) {
  return (alarms ?? []).filter(({ state }) => state === "INSUFFICIENT_DATA");
}

/** What waits to be processed: messages, how many are in progress, and the age of the oldest, if that is known. */
export function backlog({ queues }: ServiceStatus) {
  const own = queues.filter(({ name }) => name !== DECISIONS);
  const ages = own.map((queue) => queue.oldest_seconds).filter((age) => typeof age === "number");
  return {
    waiting: own.reduce((sum, queue) => sum + queue.waiting, 0),
    inFlight: own.reduce((sum, queue) => sum + queue.in_flight, 0),
    oldest: ages.length > 0 ? Math.max(...ages) : null,
  };
}

/** What a reconciliation compared and found, in one line; nothing before it has a report. */
export function summary(report: Report): string {
  const text = messages("admin").status;
  const { documents } = counts(report.compared);
  if (documents === undefined) return "";
  return [text.compared(documents), text.differences(Number(report.differences_in_all ?? 0))].join(", ");
}

/** What a reconciliation found, each as a number with what it counts. */
export function findings(report: Report): string[] {
  const text = messages("admin").status;
  const unreachable = counted(report.out_of_reach);
  const wrong = counts(report.catalogue).differences ?? 0;
  return [
    ...Object.entries(report.differences ?? {}).map(([kind, found]) => {
      const what = text.differenceKinds[kind] ?? kind.replaceAll("_", " ");
      return text.finding(counted(found), what);
    }),
    unreachable > 0 && text.outOfReach(unreachable),
    wrong > 0 && text.counts(wrong),
  ].filter((each) => each !== false);
}

/** Where a reconciliation read, and how much. */
export function readings(report: Report, text: Messages["admin"]["status"]): string {
  const { registry, bucket, knowledge_base: knowledgeBase } = counts(report.compared);
  if (registry === undefined || bucket === undefined || knowledgeBase === undefined) return "";
  return text.readFrom(registry, bucket, knowledgeBase);
}

function counts(value: unknown): Record<string, number | undefined> {
  return typeof value === "object" && value !== null ? (value as Record<string, number>) : {};
}

function counted(found: unknown): number {
  return counts(found).count ?? 0;
}

/** The largest value of an axis: 1, 2 or 5 times a power of ten. */
export function axisEnd(largest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(largest, 1)));
  return ([1, 2, 5].find((step) => step * power >= largest) ?? 10) * power;
}

export const SHORTEST_PAUSE = 60;
const LONGEST_PAUSE = 600;

/** Seconds until the status is read again: twice as long after each time that nothing changed. */
export function nextPause(seconds: number, before: ServiceStatus | null, now: ServiceStatus): number {
  if (before === null || JSON.stringify(before) !== JSON.stringify(now)) return SHORTEST_PAUSE;
  return Math.min(LONGEST_PAUSE, 2 * seconds);
}
