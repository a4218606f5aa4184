import type { InferredFilter } from "../api/types";
import { percent } from "../format";
import { messages, useMessages } from "../messages";
import { Chip } from "./shapes";

/** A filter that the search inferred from the question; it can be removed. */
export function InferredChip({ inferred, onRemove }: { inferred: InferredFilter; onRemove: () => void }) {
  const text = useMessages("parts");
  return (
    <Chip title={inferred.reason} removeLabel={text.withoutInferred} onRemove={onRemove}>
      {text.inferred} <strong>{describe(inferred.filter)}</strong>, {text.trusted(percent(inferred.trust))}{" "}
      <span className="small">{inferred.reason}</span>
    </Chip>
  );
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
