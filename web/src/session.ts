/** Who uses the console, and how their requests prove it. */
import { UserManager, WebStorageStateStore } from "oidc-client-ts";

/** The deployment's own settings, from /console.json. */
export interface ConsoleSettings {
  auth: "none" | "oidc" | "api_key";
  /** Whether the API also answers callers who have not signed in. */
  anonymous: boolean;
  issuer: string | null;
  client_id: string | null;
  scope: string | null;
  title: string;
  example: string | null;
}

const API_KEY = "ragstack.api-key";

export class Session {
  private constructor(
    readonly settings: ConsoleSettings,
    private readonly users: UserManager | null,
  ) {}

  /** Read the settings, and finish a sign-in that the issuer sent back here. */
  static async open(): Promise<Session> {
    const response = await fetch("./console.json", { cache: "no-store" });
    if (!response.ok) throw new Error(`The settings of the console cannot be read: HTTP ${response.status}`);
    const settings = (await response.json()) as ConsoleSettings;
    const users = settings.auth === "oidc" ? manager(settings) : null;
    const session = new Session(settings, users);
    const query = new URLSearchParams(location.search);
    if (users && query.has("state") && (query.has("code") || query.has("error"))) {
      try {
        const user = await users.signinCallback();
        restore(typeof user?.state === "string" ? user.state : "");
      } catch (error) {
        restore("");
        throw error;
      }
    }
    return session;
  }

  /** Whether people can sign in here. */
  get hasSignIn(): boolean {
    return this.settings.auth !== "none";
  }

  async isSignedIn(): Promise<boolean> {
    return Object.keys((await this.headers()) ?? {}).length > 0;
  }

  /** The headers that prove who sends a request; null if nobody is signed in. */
  async headers(): Promise<Record<string, string> | null> {
    const nobody = this.settings.auth === "none" || this.settings.anonymous ? {} : null;
    if (this.users === null) {
      const key = sessionStorage.getItem(API_KEY);
      return key ? { "x-api-key": key } : nobody;
    }
    let user = await this.users.getUser();
    if (user?.expired) user = user.refresh_token ? await this.users.signinSilent().catch(() => null) : null;
    return user ? { Authorization: `Bearer ${user.access_token}` } : nobody;
  }

  /** Go to the issuer's page, and come back to the same address. */
  async signIn(): Promise<void> {
    await this.users?.signinRedirect({ state: location.hash });
  }

  setApiKey(key: string): void {
    sessionStorage.setItem(API_KEY, key);
  }

  async signOut(): Promise<void> {
    sessionStorage.clear();
    await this.users?.removeUser();
    location.reload();
  }
}

function manager(settings: ConsoleSettings): UserManager {
  return new UserManager({
    authority: settings.issuer ?? "",
    client_id: settings.client_id ?? "",
    scope: settings.scope ?? "openid",
    redirect_uri: new URL("./", location.href.split(/[?#]/)[0]).href,
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: false,
    monitorSession: false,
    loadUserInfo: false,
  });
}

function restore(hash: string): void {
  history.replaceState(null, "", `${location.pathname}${hash}`);
}
