/** With which groups an explanation looks: those of a user are only in their token, of which the service knows the last. */

import type { components } from "../../api/schema";
import { time } from "../../format";
import { useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { Badge, Button, VisibleBadge } from "../../parts/shapes";
import { Prose } from "./Prose";
import { partsOf } from "./seen";

type Explanation = components["schemas"]["Explanation"];
export type Sight = "visible" | "hidden" | "unknown";

/** Whether somebody sees a document; unknown if it depends on groups that the service does not know. */
export function sight({ visible, groups, depends_on }: Explanation): Sight {
  if (groups === "unknown" && (depends_on ?? []).length > 0) return "unknown";
  return visible ? "visible" : "hidden";
}

export function SightBadge({ of }: { of: Explanation }) {
  const text = useMessages("admin").view;
  if (sight(of) === "unknown") return <Badge kind="warn">{text.dependsOnGroups}</Badge>;
  return <VisibleBadge visible={of.visible} />;
}

/** The rule that decides, in the words of the interface. */
export function Rule({ rule, label, label_rule }: Explanation) {
  const text = useMessages("admin").access;
  return (
    <div>
      <Prose text={rule} />
      <div className="small">
        {label ? (
          <>
            {text.labelIs} <bdi>{plain(label)}</bdi>.
          </>
        ) : (
          text.noLabel
        )}{" "}
        <Prose text={label_rule} />
      </div>
    </div>
  );
}

/** The groups with which a user was seen last, if the explanation has them from there. */
export function SeenGroups({ principals, seen_at }: Pick<Explanation, "principals" | "seen_at">) {
  const text = useMessages("admin").view;
  if (!seen_at) return null;
  const groups = (principals ?? []).filter((name) => !["user", "scope"].includes(partsOf(name)[0]));
  return (
    <p className="small" dir="auto">
      {groups.length === 0
        ? text.withoutGroups(time(seen_at))
        : text.withGroups(groups.map(plain).join(", "), time(seen_at))}
    </p>
  );
}

interface Props {
  viewer: string;
  /** What was found out, with where the groups come from. */
  explanations: readonly Explanation[];
  /** Look again as the same person, with one more of them. */
  onAdd: (viewer: string) => void;
}

/** Says that groups are missing for an answer, and offers those that matter. */
export function MissingGroups({ viewer, explanations, onAdd }: Props) {
  const text = useMessages("admin").view;
  const missing = [...new Set(explanations.flatMap(({ depends_on }) => depends_on ?? []))];
  if (missing.length === 0) return null;
  return (
    <div className="box warning" role="note">
      <p dir="auto">{text.unknownGroups(plain(viewer))}</p>
      <p className="row">
        {missing.map((name) => (
          <Button key={name} onClick={() => onAdd(`${viewer},${name}`)}>
            <bdi>{text.add(plain(name))}</bdi>
          </Button>
        ))}
      </p>
    </div>
  );
}
