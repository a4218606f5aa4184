/** What an explanation depends on: the groups of a user, which only their token has. */
interface Props {
  viewer: string;
  /** Groups, tenants and scopes with which the answer would be another. */
  missing: readonly string[];
  /** Look again as the same person, with one more of them. */
  onAdd: (viewer: string) => void;
}

const MOST = 8;

export function MissingGroups({ viewer, missing, onAdd }: Props) {
  if (missing.length === 0) return null;
  return (
    <div className="box warning" role="note">
      <p>
        The service does not know the groups of <bdi>{viewer}</bdi>: their token has them. Add those that they
        have, or this is the view of somebody without them.
      </p>
      <p className="row">
        {missing.slice(0, MOST).map((name) => (
          <button key={name} type="button" onClick={() => onAdd(`${viewer},${name}`)}>
            Add <bdi>{name}</bdi>
          </button>
        ))}
        {missing.length > MOST && <span className="small">and {missing.length - MOST} more</span>}
      </p>
    </div>
  );
}
