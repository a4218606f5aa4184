/**
 * Which of an issuer's tokens the API accepts. The command line has the same rule: ragstack_local/signin/provider.py,
 * bearer_of. The cases of both are in tests/ragstack_local/signin/bearer_cases.json.
 */

interface Tokens {
  access_token?: string | undefined;
  id_token?: string | undefined;
}

interface Bearer {
  token: string;
  claims: Record<string, unknown>;
}

/** Return the access token if it is for the API, else the ID token; null if neither is for one of the audiences. */
export function bearerOf(tokens: Tokens, audiences: readonly string[]): Bearer | null {
  for (const token of [tokens.access_token, tokens.id_token]) {
    if (!token) continue;
    const claims = claimsOf(token);
    // The access tokens of Amazon Cognito name the client only.
    const named = "aud" in claims ? claims.aud : claims.client_id;
    if ([named].flat().some((each) => audiences.includes(each as string))) return { token, claims };
  }
  return null;
}

/** Read the claims of a token without verifying them, which the API does; empty if it is not a JWT. */
function claimsOf(token: string): Record<string, unknown> {
  try {
    const payload = (token.split(".")[1] as string).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    const found: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof found === "object" && found !== null && !Array.isArray(found)
      ? (found as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}
