/** The address: `#/PAGE/ID?NAME=VALUE`. Servers never see what follows the `#`, so no log has the questions. */
import { useSyncExternalStore } from "react";

export interface Place {
  page: string;
  id: string | null;
  params: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/");
  return {
    page: page || "ask",
    id: rest.length > 0 ? decodeURIComponent(rest.join("/")) : null,
    params: new URLSearchParams(query),
  };
}

export function address(
  page: string,
  params: URLSearchParams | Record<string, string> = {},
  id?: string,
): string {
  const query = new URLSearchParams(params).toString();
  return `#/${page}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${query ? `?${query}` : ""}`;
}

/** Go to an address; `replace` keeps the history as it is. */
export function go(hash: string, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(history.state, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = hash;
  }
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return parsePlace(hash);
}
