/** The address: `#/PAGE/ID?NAME=VALUE`. Servers never see what follows the `#`, so no log has the questions. */
import { useSyncExternalStore } from "react";
import { newId } from "./kept";

/** Between two entries of the same address, *Back* changes no hash. */
const CHANGES = ["popstate", "hashchange"] as const;

/** The names of pages in addresses that were shared before they changed. */
const FORMER: Record<string, string> = { judge: "quality", operate: "admin" };

interface Place {
  page: string;
  id: string | null;
  params: URLSearchParams;
}

/** A place in the browser's history. */
interface Visit extends Place {
  /** Identifies the entry of the history: the same one after *Back*, *Forward* and a reload. */
  entry: string;
  /** Whether people came back to it with *Back* or *Forward*. */
  isRevisited: boolean;
}

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/");
  return {
    page: FORMER[page] ?? (page || "ask"),
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
  /** The person whose entry it is, by `Kept.id`. Without one: nobody had signed in. */
  owner?: string;
}

let current = "";
let isRevisited = false;
/** Who uses the page: undefined until it is known, null if nobody has signed in. */
let person: string | null | undefined;

/** Note which entry of the history is shown. One that has no identity yet is new. */
function arrive(): void {
  const known = history.state as Entry | null;
  if (isOfAnother(known)) hide();
  else if (known?.entry !== current) {
    isRevisited = known?.entry !== undefined && current !== "";
    current = known?.entry ?? newId();
    own();
  }
}

/** Say whose the entries of the history are from now on. Those of other people no longer show what they asked. */
export function belongTo(next: string | null): void {
  person = next;
  const known = history.state as Entry | null;
  if (isOfAnother(known)) hide();
  else {
    current = known?.entry ?? current;
    own();
  }
}

function isOfAnother(known: Entry | null): boolean {
  return person !== undefined && known?.owner !== undefined && known.owner !== person;
}

function own(): void {
  history.replaceState({ ...history.state, entry: current, ...(person ? { owner: person } : {}) }, "");
}

function hide(): void {
  current = newId();
  isRevisited = false;
  history.replaceState(null, "", address("ask"));
  own();
}

if (typeof history !== "undefined") {
  arrive();
  // Before every component: the first that looks would find an entry that is no longer new.
  for (const name of CHANGES) addEventListener(name, arrive);
}

function subscribe(listener: () => void): () => void {
  for (const name of CHANGES) addEventListener(name, listener);
  return () => {
    for (const name of CHANGES) removeEventListener(name, listener);
  };
}

export function usePlace(): Visit {
  const snapshot = useSyncExternalStore(subscribe, () => `${current} ${location.hash}`);
  const [entry = ""] = snapshot.split(" ");
  return { ...parsePlace(snapshot.slice(entry.length + 1)), entry, isRevisited };
}
