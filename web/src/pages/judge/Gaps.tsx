/** Questions that found nothing: in groups, with how they ended, for those who can do something about them. */

import { useRef, useState } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { isRegression, questionId } from "../../judgments";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Segments } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Badge, Button, Skeleton } from "../../parts/shapes";
import { Empty, ErrorBox, Loading, Notice } from "../../parts/states";
import { address } from "../../route";
import { DEFAULTS, toParams } from "../../settings";
import { useJudgments } from "./useJudgments";

type Gap = components["schemas"]["Gap"];
type State = Gap["state"];

const STATES: readonly State[] = ["open", "answered", "dismissed"];

export function GapsTab() {
  const text = useMessages("quality").gaps;
  const [state, setState] = useState<State>("open");
  const list = useLoaded("gaps", (client, signal) => client.get("/api/gaps", {}, signal));
  if (list.error) return <ErrorBox error={list.error} onRetry={list.reload} />;
  if (!list.data)
    return (
      <>
        <Loading what={text.loading} />
        <Skeleton lines={4} />
      </>
    );
  const { groups, left_out, complete, stores_questions } = list.data;
  const shown = groups.filter((gap) => gap.state === state);
  return (
    <section className="stack" aria-label={text.title}>
      <h2>{text.title}</h2>
      <p className="small">{stores_questions ? text.hintStored : `${text.hint} ${text.notStored}`}</p>
      {!complete && <Notice kind="warning">{text.notAll}</Notice>}
      {groups.length === 0 ? (
        <Empty title={text.none} icon="done">
          <p>{text.noneHint}</p>
        </Empty>
      ) : (
        <>
          <div className="gap-states">
            <Segments
              label={text.list}
              value={state}
              options={STATES.map((each) => [
                each,
                `${text.states[each]} ${groups.filter((gap) => gap.state === each).length}`,
              ])}
              onChange={(next) => {
                setState(next);
                list.reload(); // what was changed is where it belongs
              }}
            />
          </div>
          {shown.length === 0 ? (
            <Empty title={text.noneIn[state]} />
          ) : (
            <ul className="gaps">
              {shown.map((gap) => (
                <GapRow key={`${gap.id} ${gap.state}`} gap={gap} />
              ))}
            </ul>
          )}
          {left_out > 0 && <p className="small">{text.leftOut(left_out)}</p>}
        </>
      )}
    </section>
  );
}

/** A group of questions. It stays where it is when its state changes, so that the change can be taken back. */
function GapRow({ gap: loaded }: { gap: Gap }) {
  const text = useMessages("quality").gaps;
  const { client } = useApp();
  const announce = useAnnounce();
  const { questions, judge } = useJudgments();
  const { run, isRunning, error } = useAction();
  const [gap, setGap] = useState(loaded);
  const first = useRef<HTMLButtonElement>(null);
  const { question, outcomes, comments } = gap;
  const id = questionId(question, questions);
  const known = questions.find((each) => each.id === id);
  const change = (state: State) =>
    run(async () => {
      setGap(await client.patch("/api/gaps/{id}", { id: gap.id }, { state }));
      announce(text.changeOf(text.became[state], plain(question)));
      first.current?.focus(); // the pressed button may be gone
    });
  const keep = () => {
    // A grade would be an opinion of an answer that nobody has looked at.
    const change = { query_id: id, query: question, document: null, grade: null, isKept: true };
    judge({ ...change, reference: known?.answer?.reference ?? null });
    announce(text.madeRegression);
    first.current?.focus();
  };
  const isOpen = gap.state === "open";
  const named = (what: string) => text.changeOf(what, plain(question));
  const params = toParams({ ...DEFAULTS, question, ...settingsOf(gap.settings) });
  const ended = [
    outcomes.no_answer > 0 && text.noAnswer(outcomes.no_answer),
    outcomes.bad > 0 && text.bad(outcomes.bad),
    outcomes.reported > 0 && text.reported(outcomes.reported),
  ].filter((each) => each !== false);
  return (
    <li>
      <h3>
        <bdi>{plain(question)}</bdi>
        {!isOpen && (
          <Badge kind={gap.state === "answered" ? "good" : ""}>
            {text.states[gap.state]} {gap.state_by && text.stateBy(plain(gap.state_by))}
          </Badge>
        )}
      </h3>
      <p className="small">
        {[text.times(gap.count, gap.people), ...ended, text.last(time(gap.last_at))].join(" · ")}
      </p>
      {comments.length > 0 && (
        <details>
          <summary>{text.comments(comments.length)}</summary>
          <ul className="stack">
            {comments.map((comment) => (
              <li key={`${comment.by} ${comment.at}`}>
                <blockquote className="gap-comment" dir="auto">
                  {plain(comment.text)}
                </blockquote>
                <p className="small">
                  <bdi>{plain(comment.by)}</bdi>, {time(comment.at)}
                </p>
              </li>
            ))}
          </ul>
        </details>
      )}
      {error && <ErrorBox error={error} />}
      <div className="row" aria-busy={isRunning}>
        <Button
          ref={first}
          aria-label={named(isOpen ? text.markAnswered : text.reopen)}
          onClick={() => change(isOpen ? "answered" : "open")}
        >
          {isOpen ? text.markAnswered : text.reopen}
        </Button>
        {isOpen && (
          <Button aria-label={named(text.dismiss)} onClick={() => change("dismissed")}>
            {text.dismiss}
          </Button>
        )}
        {known && isRegression(known) ? (
          <a
            className="button quiet"
            href={address("quality", { q: question }, "answers")}
            aria-label={named(text.isRegression)}
          >
            {text.isRegression}
          </a>
        ) : (
          <Button kind="quiet" aria-label={named(text.makeRegression)} onClick={keep}>
            {text.makeRegression}
          </Button>
        )}
        <a className="button quiet" href={address("ask", params)} aria-label={named(text.ask)}>
          {text.ask}
        </a>
        <a className="button quiet" href={address("search", params)} aria-label={named(text.search)}>
          {text.search}
        </a>
      </div>
    </li>
  );
}

/** Where the question was asked, as far as an address can say it. */
function settingsOf(settings: Gap["settings"]) {
  const { corpus_filter: corpus, version_filter: version } = settings ?? {};
  return {
    ...(typeof corpus === "string" ? { corpus } : {}),
    ...(typeof version === "string" || typeof version === "number" ? { version } : {}),
  };
}
