/** Filters in words. */
import { messages } from "../messages";
import type { Scalar } from "../settings";

/** An attribute, and the values that it may have. */
export type Condition = readonly [key: string, values: Scalar[]];

/** The conditions of a filter that the search inferred: values of attributes, all of which apply. */
export function conditionsOf(filter: Record<string, unknown>): Condition[] {
  return Object.entries(filter).flatMap(([key, clause]): Condition[] => {
    if (key === "$and") return (clause as Record<string, unknown>[]).flatMap(conditionsOf);
    return [[key, (clause as { $in?: Scalar[] }).$in ?? [clause as Scalar]]];
  });
}

/** A filter in Mongo style, as people read it: topic = travel and year ≥ 2024. */
export function describe(filter: unknown): string {
  if (typeof filter !== "object" || filter === null) return String(filter);
  return Object.entries(filter)
    .map(([key, value]) => {
      if (key === "$and" || key === "$or") {
        return (value as unknown[])
          .map(describe)
          .join(key === "$and" ? messages("parts").and : messages("parts").or);
      }
      if (typeof value !== "object" || value === null) return `${key} = ${String(value)}`;
      return Object.entries(value)
        .map(([operator, operand]) => `${key} ${SIGNS[operator] ?? operator.slice(1)} ${shown(operand)}`)
        .join(messages("parts").and);
    })
    .join(messages("parts").and);
}

const SIGNS: Record<string, string> = {
  $eq: "=",
  $ne: "≠",
  $gt: ">",
  $gte: "≥",
  $lt: "<",
  $lte: "≤",
  $in: "=",
};

function shown(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(messages("parts").or) : String(value);
}
