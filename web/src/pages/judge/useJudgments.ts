/** The judgments that the interface keeps. A change shows at once, and goes back if it cannot be stored. */
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { useApp, useLoaded } from "../../context";
import { type Change, load, placeOf, type Question, questions, store, withChanges } from "../../judgments";

export interface Judgments {
  questions: Question[];
  isLoading: boolean;
  /** Why the judgments cannot be read. */
  error: ApiError | null;
  /** Whether a change is on its way. */
  isSaving: boolean;
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
  const queues = useRef(new Map<string, Promise<void>>());
  const done = useRef<Change[]>([]);
  const judgments = useMemo(
    () => withChanges(loaded.data ?? [], [...kept, ...pending]),
    [loaded.data, kept, pending],
  );

  const send = useCallback(
    (change: Change) => {
      setPending((before) => [...before, change]);
      setFailure(null);
      // Those of one place go one after the other, so that the last one stays.
      const place = placeOf(change);
      const sent = (queues.current.get(place) ?? Promise.resolve())
        .then(() => store(client, change))
        .then(
          () => setKept((before) => [...before, change]),
          (error: unknown) => {
            done.current = done.current.filter((each) => placeOf(each) !== place);
            setFailure(ApiError.of(error));
          },
        )
        .finally(() => setPending((before) => before.filter((each) => each !== change)));
      queues.current.set(place, sent);
    },
    [client],
  );
  const isSaving = pending.length > 0;
  useEffect(() => {
    if (!isSaving) return;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [isSaving]);
  const judge = useCallback(
    (change: Change) => {
      const before = judgments.find((each) => placeOf(each) === placeOf(change));
      const { grade = null, reference = null } = before ?? {};
      done.current.push({ ...change, grade, reference, isKept: before !== undefined && grade === null });
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
    isSaving,
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
