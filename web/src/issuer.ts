/** The library that signs people in and out at an issuer and renews their tokens. */
import { UserManager, WebStorageStateStore } from "oidc-client-ts";
import type { ConsoleSettings } from "./session";

export function manager(settings: ConsoleSettings, home: string): UserManager {
  return new UserManager({
    authority: settings.issuer ?? "",
    client_id: settings.client_id ?? "",
    scope: settings.scope ?? "openid",
    redirect_uri: home,
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: false,
    monitorSession: false,
    loadUserInfo: false,
  });
}
