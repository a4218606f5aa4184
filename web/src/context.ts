/** What every page needs. */
import { createContext, useCallback, useContext, useEffect, useState } from "react";
import { ApiError, type Client } from "./api/client";
import type { Me } from "./api/types";
import type { Kept } from "./kept";
import type { Session } from "./session";

export interface AppValues {
  client: Client;
  session: Session;
  me: Me;
  kept: Kept;
}

export const AppContext = createContext<AppValues | null>(null);

export function useApp(): AppValues {
  const values = useContext(AppContext);
  if (values === null) throw new Error("useApp needs an AppContext");
  return values;
}

/** State that stays when the page is left or loaded again, for the same person. */
export function useKept<T>(name: string, otherwise: T): [T, (value: T) => void] {
  const { kept } = useApp();
  const [value, setValue] = useState<T>(() => kept.read(name, otherwise));
  const write = useCallback(
    (next: T) => {
      setValue(next);
      kept.write(name, next);
    },
    [kept, name],
  );
  return [value, write];
}

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
}

/** Load data when the key changes; an answer to an earlier key is dropped, and data stay while they load again. */
export function useLoaded<T>(
  key: string,
  load: (client: Client, signal: AbortSignal) => Promise<T>,
): Loaded<T> {
  const { client } = useApp();
  const [state, setState] = useState<{
    key: string;
    data: T | null;
    error: ApiError | null;
    isLoading: boolean;
  }>({
    key,
    data: null,
    error: null,
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what load uses
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({
      key,
      data: before.key === key ? before.data : null,
      error: null,
      isLoading: true,
    }));
    load(client, abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data, error: null, isLoading: false }),
      (reason: unknown) =>
        !abort.signal.aborted &&
        setState((before) => ({ ...before, error: ApiError.of(reason), isLoading: false })),
    );
    return () => abort.abort();
  }, [client, key, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return {
    data: state.key === key ? state.data : null,
    error: state.error,
    isLoading: state.isLoading,
    reload,
  };
}
