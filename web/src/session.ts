/** Who uses the console, and how their requests prove it. */
import { ErrorResponse, type User, UserManager, WebStorageStateStore } from "oidc-client-ts";
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
  example: string | null;
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
  /** The proof for the last requests of somebody who is signing out. */
  private parting: Record<string, string> | null = null;

  private constructor(
    readonly settings: ConsoleSettings,
    private readonly users: UserManager | null,
  ) {
    super(null);
  }

  /** Read the settings, and finish a sign-in that the issuer sent back here. */
  static async open(): Promise<Session> {
    const response = await fetch("./console.json");
    if (!response.ok) throw new Error(`The settings of the console cannot be read: HTTP ${response.status}`);
    const settings = (await response.json()) as ConsoleSettings;
    const users = settings.auth === "oidc" ? manager(settings) : null;
    const session = new Session(settings, users);
    const query = new URLSearchParams(location.search);
    if (users && query.has("state") && (query.has("code") || query.has("error"))) {
      try {
        const user = await users.signinCallback();
        sessionStorage.removeItem(SIGNED_OUT);
        restore(user?.state as Left | undefined);
      } catch (error) {
        restore(undefined);
        throw error;
      }
    }
    return session;
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

  async isSignedIn(): Promise<boolean> {
    return this.users === null
      ? sessionStorage.getItem(API_KEY) !== null
      : (await this.users.getUser()) !== null;
  }

  /**
   * The headers that prove who sends a request. A person whose session expired does not become nobody: what they wrote
   * and read would go on as somebody else's.
   */
  async headers(): Promise<Record<string, string>> {
    if (this.parting) return this.parting;
    if (this.isSignedOut) throw new ApiError("You are signed out.", 401, "SignedOut");
    if (this.users === null) {
      const key = sessionStorage.getItem(API_KEY);
      return key ? { "x-api-key": key } : this.nobody();
    }
    const user = await this.users.getUser();
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
  private proofOf(user: User | null): Record<string, string> | null {
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
  private renewed(user: User): Promise<User | null> {
    if (!user.refresh_token || this.users === null) return Promise.resolve(null);
    this.renewal ??= this.users
      .signinSilent()
      .catch((error: unknown) => {
        if (error instanceof ErrorResponse) return null;
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
    if (this.users)
      return this.users.signinRedirect({
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
  async continueSignedOut(): Promise<void> {
    await this.forgetProof();
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
    const user = (await this.users?.getUser().catch(() => null)) ?? null;
    try {
      this.parting = key ? { "x-api-key": key } : (this.proofOf(user) ?? {});
    } catch {
      this.parting = {}; // no token is for the API, which is no reason to stay
    }
    await this.forgetProof();
    const [there] = await Promise.all([
      user && within(PARTING_SECONDS, this.signOutAddress(user)),
      within(PARTING_SECONDS, finish()),
    ]);
    await this.forgetProof(); // a renewal may have ended in between
    this.leave(there);
  }

  /** Where the issuer ends its own session; null if it has no such page. */
  private async signOutAddress(user: User): Promise<string | null> {
    const { client_id, issuer, sign_out_url } = this.settings;
    const named = sign_out_url ?? (await this.users?.metadataService.getEndSessionEndpoint());
    if (!named) return null;
    const address = new URL(named);
    const query: Record<string, string> = isCognito(issuer)
      ? { client_id: client_id ?? "", logout_uri: home() } // it does not follow the specification
      : { id_token_hint: user.id_token ?? "", client_id: client_id ?? "", post_logout_redirect_uri: home() };
    for (const [name, value] of Object.entries(query)) if (value) address.searchParams.set(name, value);
    return address.href;
  }

  private async forgetProof(): Promise<void> {
    sessionStorage.removeItem(API_KEY);
    Kept.forget();
    await this.users?.removeUser();
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

function manager(settings: ConsoleSettings): UserManager {
  return new UserManager({
    authority: settings.issuer ?? "",
    client_id: settings.client_id ?? "",
    scope: settings.scope ?? "openid",
    redirect_uri: home(),
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: false,
    monitorSession: false,
    loadUserInfo: false,
  });
}

/** Source: Amazon Cognito developer guide, the sign-out endpoint. */
function isCognito(issuer: string | null): boolean {
  return issuer !== null && new URL(issuer).hostname.startsWith("cognito-idp.");
}

/** The address of the console itself. */
function home(): string {
  return new URL("./", location.href.split(/[?#]/)[0]).href;
}

/** The place that people left to sign in. */
interface Left {
  hash: string;
  state: unknown;
}

function restore(left: Left | undefined): void {
  history.replaceState(left?.state ?? null, "", `${location.pathname}${left?.hash ?? ""}`);
}
