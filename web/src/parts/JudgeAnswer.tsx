/** Judge an answer good or bad. A bad answer stays as a regression question, with the right answer if it is known. */
import { useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { useApp } from "../context";
import { questionId, store } from "../judgments";
import { address } from "../route";
import { useAnnounce } from "./Announcer";

export interface Verdict {
  grade: number;
  reference: string | null;
}

interface Props {
  verdict: Verdict | null;
  onJudge: (verdict: Verdict | null) => void;
  /** Keys that do the same, to show on the buttons. */
  keys?: readonly [good: string, bad: string];
}

export function JudgeAnswer({ verdict, onJudge, keys }: Props) {
  const button = (grade: number, label: string, key: string | undefined) => {
    const isChosen = verdict?.grade === grade;
    return (
      <button
        type="button"
        className={`judge ${isChosen ? (grade === 1 ? "good" : "bad") : ""}`}
        aria-pressed={isChosen}
        onClick={() => onJudge(isChosen ? null : { grade, reference: verdict?.reference ?? null })}
      >
        {label} {key && <kbd>{key}</kbd>}
      </button>
    );
  };
  return (
    <fieldset className="plain row">
      <legend className="visually-hidden">Judge the answer</legend>
      {button(1, "Good answer", keys?.[0])}
      {button(0, "Bad answer", keys?.[1])}
    </fieldset>
  );
}

/** What becomes of a bad answer: a place to write the right one. */
export function Reference({ verdict, onJudge }: Pick<Props, "verdict" | "onJudge">) {
  const [text, setText] = useState(verdict?.reference ?? "");
  useEffect(() => setText(verdict?.reference ?? ""), [verdict?.reference]);
  if (verdict?.grade !== 0) return null;
  const reference = text.trim() || null;
  return (
    <form
      className="box info"
      onSubmit={(event) => {
        event.preventDefault();
        onJudge({ grade: 0, reference });
      }}
    >
      <p>
        Kept as a <a href={address("judge", {}, "questions")}>regression question</a>.
      </p>
      <label className="field">
        What would be right? (optional)
        <textarea rows={2} dir="auto" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit" disabled={reference === verdict.reference}>
        Save the right answer
      </button>
    </form>
  );
}

/** Judge the answer to a question wherever it is shown; what cannot be stored goes back. */
export function JudgeThisAnswer({ question }: { question: string }) {
  const { client } = useApp();
  const announce = useAnnounce();
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const judge = (next: Verdict | null) => {
    const before = verdict;
    setVerdict(next);
    setError(null);
    const change = { query_id: questionId(question, []), query: question, document: null };
    store(client, { ...change, grade: next?.grade ?? null, reference: next?.reference ?? null }).then(
      () =>
        announce(
          next === null ? "Judgment removed" : next.grade ? "Judged good" : "Kept as regression question",
        ),
      (reason: unknown) => {
        setVerdict((current) => (current === next ? before : current));
        setError(ApiError.of(reason));
      },
    );
  };
  return (
    <>
      <JudgeAnswer verdict={verdict} onJudge={judge} />
      {error && (
        <p className="box error" role="alert">
          The judgment could not be saved: {error.message}
        </p>
      )}
      <Reference verdict={verdict} onJudge={judge} />
    </>
  );
}
