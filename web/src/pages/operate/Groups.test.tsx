import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { components } from "../../api/schema";
import { MissingGroups, sight } from "./Groups";

const HIDDEN: components["schemas"]["Explanation"] = {
  uri: "s3://bucket/a.md",
  label: "people",
  label_rule: "The default of all keys",
  visible: false,
  rule: "people allows none of everyone, user:nina",
  depends_on: [],
  principals: ["user:nina"],
  groups: "unknown",
};

test("what depends on groups that nobody knows is neither visible nor hidden", () => {
  expect(sight({ ...HIDDEN, depends_on: ["group:people"] })).toBe("unknown");
  expect(sight(HIDDEN)).toBe("hidden");
  expect(sight({ ...HIDDEN, groups: "seen", visible: true })).toBe("visible");
});

test("every group is offered on which an explanation depends", () => {
  const groups = Array.from({ length: 12 }, (_, number) => `group:${number}`);

  const shown = renderToStaticMarkup(
    <MissingGroups
      viewer="user:nina"
      explanations={[
        { ...HIDDEN, depends_on: groups },
        { ...HIDDEN, depends_on: groups },
      ]}
      onAdd={() => undefined}
    />,
  );

  expect(shown.match(/<button/g)).toHaveLength(12);
});
