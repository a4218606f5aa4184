/** What an explanation depends on: the groups of a user, which only their token has. */

import { plain } from "../../parts/names";
import { Button } from "../../parts/shapes";

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
