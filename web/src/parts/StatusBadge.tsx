import { meaning, type Status } from "../status";

export function StatusBadge({ status }: { status: Status }) {
  const { label, badge } = meaning(status);
  return <span className={`badge ${badge}`}>{label}</span>;
}
