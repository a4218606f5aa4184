/** Judge an answer good or bad. A bad answer stays as a regression question, with the right answer if it is known. */

import { type ReactNode, useEffect, useState } from "react";
import { useAction, useApp } from "../context";
import { questionId, store } from "../judgments";
import { messages, useMessages } from "../messages";
import { address } from "../route";
import { useAnnounce } from "./Announcer";
import { Icon } from "./Icon";
import { Button, Form } from "./shapes";

export interface Verdict {
  /** null: the question is kept, but its answer has no grade. */
  grade: number | null;
  reference: string | null;
}

interface Props {
  verdict: Verdict | null;
  onJudge: (verdict: Verdict | null) => void;
  /** Keys that do the same, to show on the buttons. */
  keys?: readonly [good: string, bad: string];
  /** Whether the buttons are as quiet as those next to them. */
  isQuiet?: boolean;
}

export function JudgeAnswer({ verdict, onJudge, keys, isQuiet = false }: Props) {
  const text = useMessages("parts");
  const button = (grade: number, label: string, key: string | undefined) => (
    <GradeButton
      isGood={grade === 1}
      isChosen={verdict?.grade === grade}
      isQuiet={isQuiet}
      label={label}
      onChange={(isChosen) => onJudge(isChosen ? { grade, reference: verdict?.reference ?? null } : null)}
    >
      {isQuiet ? (
        <>
          <Icon name={grade ? "good" : "bad"} size={16} /> {grade ? text.goodShort : text.badShort}
        </>
      ) : (
        label
      )}
      {key && (
        <>
          {" "}
          <kbd>{key}</kbd>
        </>
      )}
    </GradeButton>
  );
  return (
    <fieldset className="plain row">
      <legend className="visually-hidden">{text.judge}</legend>
      {button(1, text.good, keys?.[0])}
      {button(0, text.bad, keys?.[1])}
    </fieldset>
  );
}

interface GradeProps {
  isGood: boolean;
  isChosen: boolean;
  isQuiet?: boolean;
  /** Its name, if it shows a shorter one. */
  label?: string;
  onChange: (isChosen: boolean) => void;
  children: ReactNode;
}

/** Gives a grade, or takes it back. */
export function GradeButton({ isGood, isChosen, isQuiet, label, onChange, children }: GradeProps) {
  return (
    <Button
      className={`judge ${isQuiet ? "quiet" : ""} ${isChosen ? (isGood ? "good" : "bad") : ""}`}
      aria-label={isQuiet ? label : undefined}
      aria-pressed={isChosen}
      onClick={() => onChange(!isChosen)}
    >
      {children}
    </Button>
  );
}

/** What becomes of a bad answer: a place to write the right one. */
export function Reference({ verdict, onJudge }: Pick<Props, "verdict" | "onJudge">) {
  const messages = useMessages("parts");
  const [text, setText] = useState(verdict?.reference ?? "");
  useEffect(() => setText(verdict?.reference ?? ""), [verdict?.reference]);
  if (verdict === null || verdict.grade === 1) return null;
  const reference = text.trim() || null;
  return (
    <Form className="box info" onSubmit={() => onJudge({ ...verdict, reference })}>
      <p>
        {messages.keptAs}
        <a href={address("quality", {}, "questions")}>{messages.regression}</a>.
      </p>
      <label className="field">
        {messages.whatIsRight}
        <textarea rows={2} dir="auto" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <Button type="submit" disabled={reference === verdict.reference}>
        {messages.saveRight}
      </Button>
    </Form>
  );
}

/** What happened to an answer, to be announced. */
export function told(verdict: Verdict | null): string {
  const text = messages("parts");
  if (verdict === null) return text.judgmentRemoved;
  return verdict.grade ? text.judgedGood : text.judgedBad;
}

interface ThisProps {
  question: string;
  /** What else can be done with the answer. */
  children?: ReactNode;
}

/** Judge the answer to a question wherever it is shown; what cannot be stored goes back. */
export function JudgeThisAnswer({ question, children }: ThisProps) {
  const { client } = useApp();
  const text = useMessages("parts");
  const announce = useAnnounce();
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const { run, error } = useAction();
  const judge = (next: Verdict | null) => {
    setVerdict(next);
    void run(async () => {
      const change = { query_id: questionId(question, []), query: question, document: null };
      try {
        await store(client, { ...change, grade: next?.grade ?? null, reference: next?.reference ?? null });
      } catch (reason) {
        setVerdict((current) => (current === next ? verdict : current));
        throw reason;
      }
      announce(told(next));
    });
  };
  return (
    <>
      <div className="actions">
        {children}
        <JudgeAnswer verdict={verdict} onJudge={judge} isQuiet />
      </div>
      {error && (
        <p className="box error" role="alert">
          {text.judgmentFailed(error.message)}
        </p>
      )}
      <Reference verdict={verdict} onJudge={judge} />
    </>
  );
}
