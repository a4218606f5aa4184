import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bearerOf } from "./bearer";

interface Case {
  name: string;
  access: object | string | null;
  id: object | string | null;
  chosen: "access" | "id" | null;
}

/** The same cases as those of the command line. */
const cases = JSON.parse(
  readFileSync(new URL("../../tests/ragstack_local/signin/bearer_cases.json", import.meta.url), "utf8"),
) as Case[];

test.each(cases)("a token is chosen by its audience: $name", ({ access, id, chosen }) => {
  const tokens = { access_token: written(access), id_token: written(id) };

  const bearer = bearerOf(tokens, ["api", "second"]);

  expect(bearer?.token).toBe(chosen === null ? undefined : tokens[`${chosen}_token`]);
  expect(bearer?.claims).toEqual({ access, id, null: undefined }[`${chosen}`]);
});

/** A token that nobody signed, or a text that is none. */
function written(claims: object | string | null): string | undefined {
  if (claims === null || typeof claims === "string") return claims ?? undefined;
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
}
