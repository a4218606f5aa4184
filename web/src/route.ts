/** The address: `#/PAGE/ID?NAME=VALUE`. Servers never see what follows the `#`, so no log has the questions. */
import { useSyncExternalStore } from "react";

export interface Place {
  page: string;
  id: string | null;
  params: URLSearchParams;
}

/** A place in the browser's history. */
export interface Visit extends Place {
  /** Identifies the entry of the history: the same one after *Back*, *Forward* and a reload. */
  entry: string;
  /** Whether people came back to it with *Back* or *Forward*. */
  isRevisited: boolean;
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

/** Whether two addresses are the same place: `%20` and `+` are both a space. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [parsePlace(one), parsePlace(other)];
  return a.page === b.page && a.id === b.id && a.params.toString() === b.params.toString();
}

/** Go to an address, also to the present one: a new entry of the history. `replace` keeps the history as it is. */
export function go(hash: string, { replace = false } = {}): void {
  if (replace) history.replaceState(history.state, "", hash);
  else history.pushState(null, "", hash);
  isRevisited = false;
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Go to an address, or do something if people are there already. */
export function goOr(hash: string, here: () => void, { replace = false } = {}): void {
  if (isSame(hash, location.hash)) here();
  else go(hash, { replace });
}

interface Entry {
  entry: string;
}

let current = "";
let isRevisited = false;

/** Note which entry of the history is shown. One that has no identity yet is new. */
function arrive(): void {
  const known = (history.state as Entry | null)?.entry;
  if (known === current) return;
  isRevisited = known !== undefined && current !== "";
  current = known ?? `${Date.now().toString(36)}.${Math.random().toString(36).slice(2)}`;
  if (known === undefined) history.replaceState({ ...history.state, entry: current }, "");
}

if (typeof history !== "undefined") {
  arrive();
  // Before every component: the first that looks would find an entry that is no longer new.
  for (const name of ["popstate", "hashchange"]) addEventListener(name, arrive);
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

export function usePlace(): Visit {
  const snapshot = useSyncExternalStore(subscribe, () => `${current} ${location.hash}`);
  const [entry = ""] = snapshot.split(" ");
  return { ...parsePlace(snapshot.slice(entry.length + 1)), entry, isRevisited };
}
