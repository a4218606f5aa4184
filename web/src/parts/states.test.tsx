import { renderToStaticMarkup } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import { AppContext, type AppValues } from "../context";
import { ErrorBox, Notes, sentence } from "./states";

test("every note of an answer is shown, also two of the same kind", () => {
  const shown = renderToStaticMarkup(
    <Notes
      notes={[
        { kind: "reranker", text: "The reranker failed" },
        { kind: "support", text: "One sentence was not checked" },
        { kind: "support", text: "Another sentence was not checked." },
      ]}
    />,
  );

  expect(shown.match(/<p.*?<\/p>/g)).toEqual([
    '<p class="box info">The reranker failed.</p>',
    '<p class="box info">One sentence was not checked.</p>',
    '<p class="box info">Another sentence was not checked.</p>',
  ]);
});

test("a text ends as a sentence does", () => {
  expect(["No", "No.", "Why?"].map(sentence)).toEqual(["No.", "No.", "Why?"]);
});

test("a refused proof is explained as the API explains it, with a way to sign in", () => {
  const error = new ApiError("The token is for another audience: sign in again", 401, "NotAuthenticated");

  const shown = renderToStaticMarkup(
    <AppContext value={{ session: {} } as AppValues}>
      <ErrorBox error={error} onRetry={() => undefined} />
    </AppContext>,
  );

  expect(shown).toContain("The token is for another audience: sign in again.");
  expect(shown).not.toContain("expired");
  expect(shown).toMatch(/<button[^>]*>Sign in<\/button>/);
  expect(shown).not.toContain("Try again");
});

test.each([
  [
    "ask people@example.com for access",
    "mailto:people@example.com?subject=Request%20for%20access%20to%20a%20document&amp;body=https%3A%2F%2Fsearch.example",
  ],
  ["ask the front desk for access", null],
])("a refusal that names whom to ask has a mail to them: %s", (whom, href) => {
  vi.stubGlobal("location", { href: "https://search.example/#/documents/pay" });
  const error = new ApiError(`user:rita may not see this document: ${whom}`, 403, "AccessNeeded");

  const shown = renderToStaticMarkup(<ErrorBox error={error} onRetry={() => undefined} />);

  expect(shown).toContain("You need access");
  expect(shown).toContain(whom);
  if (href) expect(shown).toContain(href);
  else expect(shown).not.toContain("mailto:");
  expect(shown.includes("Try again")).toBe(href === null);
});
