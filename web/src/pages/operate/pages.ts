/** Lists that the interface gives page by page. */

import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, type Client } from "../../api/client";
import { useApp } from "../../context";

export interface Page<Row> {
  rows: Row[];
  /** Requests the next page; null on the last one. */
  token: string | null;
}

type Load<Row> = (client: Client, token: string | null, signal: AbortSignal) => Promise<Page<Row>>;

interface Pages<Row> extends Page<Row> {
  isLoading: boolean;
  error: ApiError | null;
  /** Load the next page, or the one that failed. */
  more: () => void;
}

/** Load the first page, and others on demand. For another list, give the component another key. */
export function usePages<Row>(load: Load<Row>, onPage: (rows: Row[]) => void = () => undefined): Pages<Row> {
  const { client } = useApp();
  const [page, setPage] = useState<Page<Row>>({ rows: [], token: null });
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<ApiError | null>(null);
  const running = useRef<AbortController | null>(null);
  const { token } = page;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what loads belongs to the component
  const more = useCallback(() => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setLoading(true);
    setError(null);
    load(client, token, abort.signal).then(
      (next) => {
        if (abort.signal.aborted) return;
        setPage((before) => ({ ...next, rows: [...(token === null ? [] : before.rows), ...next.rows] }));
        setLoading(false);
        onPage(next.rows);
      },
      (reason: unknown) => {
        if (abort.signal.aborted) return;
        setError(ApiError.of(reason));
        setLoading(false);
      },
    );
  }, [client, token]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first page, once
  useEffect(() => {
    more();
    return () => running.current?.abort();
  }, []);
  return { ...page, isLoading, error, more };
}
