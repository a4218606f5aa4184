/** What every page needs. */
import { createContext, useCallback, useContext, useEffect, useRef, useState } from "react";
import { ApiError, type Client } from "./api/client";
import type { Known } from "./identity";
import type { Session } from "./session";

export interface AppValues extends Known {
  client: Client;
  session: Session;
  /** Ask the service again what the person may do. */
  refreshMe: () => void;
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
  /** The data, or those of the key before until the next ones are here. */
  shown: T | null;
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
  const [found, setFound] = useState<{ key: string; data: T } | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what load uses
  useEffect(() => {
    const abort = new AbortController();
    const end = (set: () => void) => {
      if (abort.signal.aborted) return;
      set();
      setLoading(false);
    };
    setError(null);
    setLoading(true);
    load(client, abort.signal).then(
      (data) => end(() => setFound({ key, data })),
      (reason: unknown) => end(() => setError(ApiError.of(reason))),
    );
    return () => abort.abort();
  }, [client, key, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const shown = found?.data ?? null;
  return { data: found?.key === key ? shown : null, shown, error, isLoading, reload };
}

interface Action {
  /** The signal is that of `cancel`, and of people who leave the page. */
  run: (work: (signal: AbortSignal) => Promise<void>) => Promise<void>;
  cancel: () => void;
  isRunning: boolean;
  /** Why the last attempt failed. */
  error: ApiError | null;
}

/** Something that people start, and that can fail. */
export function useAction(): Action {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const running = useRef<AbortController | null>(null);
  const cancel = useCallback(() => running.current?.abort(), []);
  useEffect(() => cancel, [cancel]);
  const run = useCallback(async (work: (signal: AbortSignal) => Promise<void>) => {
    const abort = new AbortController();
    running.current = abort;
    setRunning(true);
    setError(null);
    await work(abort.signal).catch((reason: unknown) => {
      if (!abort.signal.aborted) setError(ApiError.of(reason));
    });
    setRunning(false);
  }, []);
  return { run, cancel, isRunning, error };
}

/** Do something again and again while it is wanted and the page is seen, and at once when it is seen again. */
export function useRepeated(seconds: number, isWanted: boolean, action: () => void): void {
  useEffect(() => {
    if (!isWanted) return;
    const timer = setInterval(() => {
      if (!document.hidden) action();
    }, seconds * 1000);
    const onShown = () => {
      if (!document.hidden) action();
    };
    document.addEventListener("visibilitychange", onShown);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, [seconds, isWanted, action]);
}
