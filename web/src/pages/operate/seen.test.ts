import { expect, it } from "vitest";
import { sorted } from "./inForce";
import { groupsOf, matches, type Person, viewerOf } from "./seen";

const ALICE: Person = {
  principal: "user:alice",
  groups: ["group:people", "group:staff"],
  last_seen: "2026-02-03T04:00:00Z",
  rights: ["read", "write"],
  labels: ["people"],
  writable: [{ prefix: "documents/people/", default: "people", labels: ["people"] }],
};

it("a person is found by words of name, groups, labels and folders, all of them", () => {
  for (const words of ["", " ALICE ", "staff ali", "documents/people"])
    expect(matches(ALICE, words)).toBe(true);
  expect(matches(ALICE, "alice engineering")).toBe(false);
});

it("a user is looked at with the groups that the service knows, a program with its own", () => {
  expect(viewerOf(ALICE)).toBe("user:alice");
  expect(viewerOf({ ...ALICE, principal: "role:loader", groups: ["scope:read"] })).toBe(
    "role:loader,scope:read",
  );
});

it("settings that somebody changed come apart from the defaults", () => {
  const setting = (name: string, origin: "default" | "context", description: string | null = null) => ({
    name,
    value: "8",
    default: "8",
    origin,
    description,
  });
  const all = [
    setting("SEARCH_K", "default", "candidates of a search"),
    setting("auth", "context"),
    setting("TOP", "context"),
  ];

  const { changed, defaults } = sorted(all, "");
  expect([changed, defaults].map((each) => each.map(({ name }) => name))).toEqual([
    ["auth", "TOP"],
    ["SEARCH_K"],
  ]);
  expect(sorted(all, "CANDIDATES search").defaults).toHaveLength(1);
  expect(sorted(all, "candidates auth")).toEqual({ changed: [], defaults: [] });
});

it("the scopes of a user's token are no groups of theirs", () => {
  expect(groupsOf("user:alice", ["group:people", "scope:openid", "tenant:acme"])).toEqual([
    "group:people",
    "tenant:acme",
  ]);
  expect(groupsOf("role:job", ["scope:docs/read"])).toEqual(["scope:docs/read"]);
});
