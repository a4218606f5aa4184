/** With which groups an explanation looks: those of a user are only in their token, of which the service knows the last. */

import type { components } from "../../api/schema";
import { time } from "../../format";
import { plain } from "../../parts/names";
import { Button } from "../../parts/shapes";

type Explanation = components["schemas"]["Explanation"];

/** The groups with which a user was seen last, if the explanation has them from there. */
export function SeenGroups({ principals, seen_at }: Pick<Explanation, "principals" | "seen_at">) {
  if (!seen_at) return null;
  const groups = (principals ?? []).filter((name) => !name.startsWith("user:"));
  return (
    <p className="small">
      {groups.length === 0 ? "Without groups" : <bdi>With {groups.map(plain).join(", ")}</bdi>}, as seen at{" "}
      {time(seen_at)}.
    </p>
  );
}

interface Props {
  viewer: string;
  /** Groups, tenants and scopes with which the answer would be another. */
  missing: readonly string[];
  /** Look again as the same person, with one more of them. */
  onAdd: (viewer: string) => void;
}

export function MissingGroups({ viewer, missing, onAdd }: Props) {
  if (missing.length === 0) return null;
  return (
    <div className="box warning" role="note">
      <p>
        The service does not know the groups of <bdi>{plain(viewer)}</bdi>: only their token names them. Add
        the groups that they are in. Otherwise this is the view of somebody without them.
      </p>
      <p className="row">
        {missing.map((name) => (
          <Button key={name} onClick={() => onAdd(`${viewer},${name}`)}>
            Add <bdi>{plain(name)}</bdi>
          </Button>
        ))}
      </p>
    </div>
  );
}
