/** Who uses the console, and how their requests prove it. */
import type { User, UserManager } from "oidc-client-ts";
import { ApiError } from "./api/client";
import { bearerOf } from "./bearer";
import { Kept } from "./kept";
import { Store } from "./store";

/** The deployment's own settings, from /console.json. */
export interface ConsoleSettings {
  auth: "none" | "oidc" | "api_key";
  /** Whether the API also answers callers who have not signed in. */
  anonymous: boolean;
  issuer: string | null;
  client_id: string | null;
  /** The audiences of tokens that the API accepts. */
  audiences: string[];
  scope: string | null;
  /** Where people sign out, if the issuer's metadata does not say it. */
  sign_out_url: string | null;
  title: string;
  questions: readonly string[];
}

/** Codes of the errors of callers who did not send a proof. */
export const NOT_SIGNED_IN = "NotSignedIn";
export const SESSION_EXPIRED = "SessionExpired";

const API_KEY = "ragstack.api-key";
/** Somebody signed out in this tab: nothing is asked without signing in until they choose it. */
const SIGNED_OUT = "ragstack.signed-out";

/** A token counts as expired this long before it expires, so that it does not expire on the way. */
const EARLY_SECONDS = 30;
/** How long each request of signing out may take. The proof is forgotten before them. */
const PARTING_SECONDS = 3;

/** Its value is why the proof that this page sent is no longer accepted: it has to be given again. */
export class Session extends Store<ApiError | null> {
  private renewal: Promise<User | null> | null = null;
  private issuer: Promise<UserManager> | null = null;
  /** The proof for the last requests of somebody who is signing out. */
  private parting: Record<string, string> | null = null;

  private constructor(readonly settings: ConsoleSettings) {
    super(null);
  }

  /** Read the settings, and finish a sign-in that the issuer sent back here. */
  static async open(): Promise<Session> {
    const response = await fetch("./console.json");
    if (!response.ok) throw new Error(`The settings of the console cannot be read: HTTP ${response.status}`);
    const settings = (await response.json()) as ConsoleSettings;
    const session = new Session(settings);
    const query = new URLSearchParams(location.search);
    if (session.hasIssuer && query.has("state") && (query.has("code") || query.has("error"))) {
      try {
        const user = await (await session.users()).signinCallback();
        sessionStorage.removeItem(SIGNED_OUT);
        restore(user?.state as Left | undefined);
      } catch (error) {
        restore(undefined);
        throw error;
      }
    }
    if (session.hasIssuer && session.stored() === null) session.users().catch(() => undefined); // for the button
    return session;
  }

  private get hasIssuer(): boolean {
    return this.settings.auth === "oidc";
  }

  /** The issuer's library. Who has signed in needs it when the tokens expire, so the first page loads without it. */
  private async users(): Promise<UserManager> {
    this.issuer ??= import("./issuer").then(({ manager }) => manager(this.settings, home()));
    return this.issuer.catch((error) => {
      this.issuer = null; // the next press tries again
      throw error;
    });
  }

  /** The tokens that the issuer's library keeps in this tab; null if nobody has signed in. */
  private stored(): Tokens | null {
    try {
      return JSON.parse(sessionStorage.getItem(this.storedAs) ?? "null") as Tokens | null;
    } catch {
      return null;
    }
  }

  private get storedAs(): string {
    return `oidc.user:${this.settings.issuer ?? ""}:${this.settings.client_id ?? ""}`;
  }

  /** Whether people can sign in here. */
  get hasSignIn(): boolean {
    return this.settings.auth !== "none";
  }

  /** Whether somebody signed out in this tab, and has not chosen how to go on. */
  get isSignedOut(): boolean {
    return sessionStorage.getItem(SIGNED_OUT) !== null;
  }

  /** Note that the API does not accept the proof. */
  end(reason: ApiError): void {
    this.set(reason);
  }

  get isSignedIn(): boolean {
    return this.hasIssuer ? this.stored() !== null : sessionStorage.getItem(API_KEY) !== null;
  }

  /**
   * The headers that prove who sends a request. A person whose session expired does not become nobody: what they wrote
   * and read would go on as somebody else's.
   */
  async headers(): Promise<Record<string, string>> {
    if (this.parting) return this.parting;
    if (this.isSignedOut) throw new ApiError("You are signed out.", 401, "SignedOut");
    if (!this.hasIssuer) {
      const key = sessionStorage.getItem(API_KEY);
      return key ? { "x-api-key": key } : this.nobody();
    }
    const user = this.stored();
    if (user === null) return this.nobody();
    const headers = this.proofOf(user) ?? this.proofOf(await this.renewed(user));
    if (headers === null) throw new ApiError("Your session has expired.", 401, SESSION_EXPIRED);
    return headers;
  }

  private nobody(): Record<string, string> {
    if (this.settings.auth === "none" || this.settings.anonymous) return {};
    throw new ApiError("You are not signed in.", 401, NOT_SIGNED_IN);
  }

  /** The headers with the token for the API; null if it expired. */
  private proofOf(user: Tokens | null): Record<string, string> | null {
    if (user === null) return null;
    const bearer = bearerOf(user, this.settings.audiences);
    if (bearer === null) {
      const text = `The issuer issued no token for ${this.settings.audiences.join(" or ")}, so the API cannot know you.`;
      throw new ApiError(text, 403, "NoTokenForTheApi");
    }
    const expiresAt = Number(bearer.claims.exp ?? user.expires_at ?? Number.POSITIVE_INFINITY);
    return expiresAt - EARLY_SECONDS > Date.now() / 1000 ? { Authorization: `Bearer ${bearer.token}` } : null;
  }

  /** New tokens for the refresh token; null if there are none. Many issuers accept it only once, so requests share it. */
  private renewed(user: Tokens): Promise<User | null> {
    if (!user.refresh_token) return Promise.resolve(null);
    this.renewal ??= this.users()
      .then((users) => users.signinSilent())
      .catch((error: Error) => {
        if (error.name === "ErrorResponse") return null; // the issuer's own refusal
        throw new ApiError(
          "The issuer does not answer, so your session cannot be renewed.",
          0,
          "Unreachable",
        );
      })
      .finally(() => {
        this.renewal = null;
      });
    return this.renewal;
  }

  /** Go to the issuer's page, and come back to the same address. With API keys, ask for one. */
  async signIn(): Promise<void> {
    if (this.hasIssuer)
      return (await this.users()).signinRedirect({
        state: { hash: location.hash, state: history.state } satisfies Left,
      });
    sessionStorage.removeItem(API_KEY);
    location.reload();
  }

  /** Use another key: another person, for whom the page is loaded again. */
  setApiKey(key: string): void {
    sessionStorage.setItem(API_KEY, key);
    sessionStorage.removeItem(SIGNED_OUT);
    location.reload();
  }

  /** Go on as nobody, if the API answers callers who have not signed in. */
  continueSignedOut(): void {
    this.forgetProof();
    sessionStorage.removeItem(SIGNED_OUT);
    this.leave();
  }

  /**
   * Sign out here and at the issuer, and forget everything. The proof is forgotten first: whoever closes the tab while
   * the issuer does not answer is signed out.
   *
   * @param finish What is to be done before, with the proof that was there.
   */
  async signOut(finish: () => Promise<void> = async () => undefined): Promise<void> {
    sessionStorage.setItem(SIGNED_OUT, "yes");
    const key = sessionStorage.getItem(API_KEY);
    const user = this.hasIssuer ? this.stored() : null;
    try {
      this.parting = key ? { "x-api-key": key } : (this.proofOf(user) ?? {});
    } catch {
      this.parting = {}; // no token is for the API, which is no reason to stay
    }
    this.forgetProof();
    const [there] = await Promise.all([
      user && within(PARTING_SECONDS, this.signOutAddress(user)),
      within(PARTING_SECONDS, finish()),
    ]);
    this.forgetProof(); // a renewal may have ended in between
    this.leave(there);
  }

  /** Where the issuer ends its own session; null if it has no such page. */
  private async signOutAddress(user: Tokens): Promise<string | null> {
    const { client_id, issuer, sign_out_url } = this.settings;
    const named = sign_out_url ?? (await (await this.users()).metadataService.getEndSessionEndpoint());
    if (!named) return null;
    const address = new URL(named);
    const query: Record<string, string> = isCognito(issuer)
      ? { client_id: client_id ?? "", logout_uri: home() } // it does not follow the specification
      : { id_token_hint: user.id_token ?? "", client_id: client_id ?? "", post_logout_redirect_uri: home() };
    for (const [name, value] of Object.entries(query)) if (value) address.searchParams.set(name, value);
    return address.href;
  }

  private forgetProof(): void {
    sessionStorage.removeItem(API_KEY);
    sessionStorage.removeItem(this.storedAs);
    Kept.forget();
  }

  /** Load another page in place of this one, whose address has a question and whose memory has what it showed. */
  private leave(address: string | null = null): void {
    history.replaceState(null, "", home());
    if (address === null) location.reload();
    else location.assign(address);
  }
}

/** Wait for a result, but not longer; null if it fails or takes too long. */
export async function within<T>(seconds: number, result: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((done) => {
    timer = setTimeout(() => done(null), seconds * 1000);
  });
  return Promise.race([result.catch(() => null), late]).finally(() => clearTimeout(timer));
}

/** Source: Amazon Cognito developer guide, the sign-out endpoint. */
function isCognito(issuer: string | null): boolean {
  return issuer !== null && new URL(issuer).hostname.startsWith("cognito-idp.");
}

/** The address of the console itself. */
function home(): string {
  return new URL("./", location.href.split(/[?#]/)[0]).href;
}

/** What an issuer issued to somebody. */
type Tokens = Pick<User, "access_token" | "id_token" | "refresh_token" | "expires_at">;

/** The place that people left to sign in. */
interface Left {
  hash: string;
  state: unknown;
}

function restore(left: Left | undefined): void {
  history.replaceState(left?.state ?? null, "", `${location.pathname}${left?.hash ?? ""}`);
}
