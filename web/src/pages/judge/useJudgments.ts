/** The judgments that the interface keeps. A change shows at once, and goes back if it cannot be stored. */
import { createContext, useCallback, useContext, useMemo, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { useApp, useLoaded } from "../../context";
import { type Change, load, placeOf, type Question, questions, store, withChanges } from "../../judgments";

export interface Judgments {
  questions: Question[];
  isLoading: boolean;
  /** Why the judgments cannot be read. */
  error: ApiError | null;
  /** Why the last change was not stored. */
  failure: ApiError | null;
  dismiss: () => void;
  reload: () => void;
  judge: (change: Change) => void;
  /** Take back the last change of this visit; returns it, or null if there is none. */
  undo: () => Change | null;
}

export function useLoadedJudgments(): Judgments {
  const { client } = useApp();
  const loaded = useLoaded("judgments", (own, signal) => load(own, false, signal));
  const [kept, setKept] = useState<Change[]>([]);
  const [pending, setPending] = useState<Change[]>([]);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const queue = useRef(Promise.resolve());
  const done = useRef<Change[]>([]);
  const judgments = useMemo(
    () => withChanges(loaded.data ?? [], [...kept, ...pending]),
    [loaded.data, kept, pending],
  );

  const send = useCallback(
    (change: Change) => {
      setPending((before) => [...before, change]);
      setFailure(null);
      // One after the other, so that the last change of a place is the one that stays.
      queue.current = queue.current
        .then(() => store(client, change))
        .then(
          () => setKept((before) => [...before, change]),
          (error: unknown) => {
            done.current = done.current.filter((each) => placeOf(each) !== placeOf(change));
            setFailure(error instanceof ApiError ? error : new ApiError(String(error), 0, "Unknown"));
          },
        )
        .finally(() => setPending((before) => before.filter((each) => each !== change)));
    },
    [client],
  );
  const judge = useCallback(
    (change: Change) => {
      const before = judgments.find((each) => placeOf(each) === placeOf(change));
      done.current.push({ ...change, grade: before?.grade ?? null, reference: before?.reference ?? null });
      send(change);
    },
    [judgments, send],
  );
  const undo = useCallback(() => {
    const change = done.current.pop() ?? null;
    if (change) send(change);
    return change;
  }, [send]);

  return {
    questions: useMemo(() => questions(judgments), [judgments]),
    isLoading: loaded.isLoading && loaded.data === null,
    error: loaded.data === null ? loaded.error : null,
    failure,
    dismiss: useCallback(() => setFailure(null), []),
    reload: loaded.reload,
    judge,
    undo,
  };
}

export const JudgmentsContext = createContext<Judgments | null>(null);

export function useJudgments(): Judgments {
  const judgments = useContext(JudgmentsContext);
  if (judgments === null) throw new Error("useJudgments needs a JudgmentsContext");
  return judgments;
}
