/** Search, explained: what was found and why, what is missing and why, and what other settings would change. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { RetrieveResponse } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Icon } from "../../parts/Icon";
import { OriginalDialog, type Shown } from "../../parts/Original";
import { SettingsRows } from "../../parts/SettingsRows";
import { Suggestions } from "../../parts/Suggestions";
import { Button, Form, Skeleton } from "../../parts/shapes";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { address, go, goOr, usePlace } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import "../../style/search.css";
import { matches } from "../../parts/matches";
import { Comparison } from "./Comparison";
import { changes, summary } from "./changes";
import { fromAddress, type SearchPlace, toAddress } from "./place";
import { Results } from "./Results";
import { Whereabouts } from "./Whereabouts";

/** The interface marks this many texts in a document. */
const MOST_MARKS = 50;

export default function SearchPage() {
  const text = useMessages("search");
  const { params } = usePlace();
  const place = fromAddress(params);
  const { question } = place.settings;
  const [written, setWritten] = useState(question);
  const [isLooking, setLooking] = useState(false);
  const [open, setOpen] = useState<Shown | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const missingButton = useRef<HTMLButtonElement>(null);
  const first = useSearch(place.settings);
  const second = useSearch(place.other);
  useEffect(() => setWritten(question), [question]);
  useSpoken(first, second, place.other !== null);
  const linked = useLinked(place, first.data, second.data);
  useEffect(() => {
    if (question === "") field.current?.focus();
  }, [question]);

  const submit = ({ open: _, ...next }: SearchPlace) =>
    goOr(address("search", toAddress(next)), () => {
      first.reload();
      if (next.other) second.reload();
    });
  /** What is written counts, also for those who change a setting before they press the button. */
  const change = (settings: Settings, other: Settings | null) => {
    const next = withQuestion({ settings, other, missing: place.missing }, written.trim() || question);
    if (question === "") go(address("search", toAddress(withQuestion(next, ""))), { replace: true });
    else submit(next);
  };
  const results = (name: string, response: RetrieveResponse, settings: Settings, isOther = false) => (
    <Results
      {...{ name, response, settings }}
      linkTo={linked.linkTo}
      onSearch={(next) => submit(isOther ? { ...place, other: next } : { ...place, settings: next })}
    />
  );
  const explained = (name: "a" | "b", list: ReactNode) => (
    <details className="explained">
      <summary>{text.explained(name.toUpperCase())}</summary>
      {list}
    </details>
  );
  const isMissingOpen = question !== "" && (isLooking || place.missing !== "");

  return (
    <div className="stack search-page">
      <h1 className="visually-hidden">{text.title}</h1>
      <Form
        className="search-form"
        onSubmit={() => {
          if (written.trim()) submit(withQuestion(place, written.trim()));
        }}
      >
        <div className="icon-field search-box">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            aria-label={text.title}
            dir="auto"
            placeholder={text.placeholder}
            value={written}
            onChange={(event) => setWritten(event.target.value)}
          />
          <Button type="submit" kind="primary" aria-disabled={!written.trim()}>
            {text.submit}
          </Button>
        </div>
        <SettingsRows
          a={place.settings}
          b={place.other}
          onChange={change}
          inferred={[first.data?.inferred_filter, second.data?.inferred_filter]}
        >
          {question !== "" && (
            <Button
              kind="quiet"
              ref={missingButton}
              aria-expanded={isMissingOpen}
              onClick={() => {
                setLooking(!isMissingOpen);
                if (place.missing) submit({ ...place, missing: "" });
              }}
            >
              <Icon name="missing" size={15} /> {text.missing}
            </Button>
          )}
        </SettingsRows>
      </Form>
      {isMissingOpen && (
        <Whereabouts
          place={place}
          resultsShown={place.other === null ? (first.data?.results.length ?? 0) : 0}
          onMissing={(missing) => submit({ ...place, missing })}
          onSearch={submit}
          onOpen={setOpen}
          onClose={() => {
            setLooking(false);
            if (place.missing) submit({ ...place, missing: "" });
            missingButton.current?.focus();
          }}
        />
      )}
      {question === "" ? (
        <Start />
      ) : place.other ? (
        <Answered searches={[first, second]} what={text.bothRankings}>
          {(before, after) => (
            <>
              <Comparison before={before} after={after} onOpen={setOpen} />
              {explained("a", results("a", before, place.settings))}
              {explained("b", results("b", after, place.other ?? place.settings, true))}
            </>
          )}
        </Answered>
      ) : (
        <Answered searches={[first]} what={text.theResults}>
          {(response) => results("result", response, place.settings)}
        </Answered>
      )}
      {open && <OriginalDialog passage={withMarks(question, open)} areWords onClose={() => setOpen(null)} />}
      {linked.passage && (
        <OriginalDialog passage={withMarks(question, linked.passage)} areWords onClose={linked.close} />
      )}
    </div>
  );
}

function withQuestion({ settings, other, missing }: SearchPlace, question: string): SearchPlace {
  return { settings: { ...settings, question }, other: other && { ...other, question }, missing };
}

/** A passage whose words that match are marked in its document. */
function withMarks(question: string, passage: Shown): Shown {
  const quoted = matches(question, passage.content).slice(0, MOST_MARKS);
  return { ...passage, quoted } as Shown;
}

interface Linked {
  passage: Shown | null;
  linkTo: (id: string) => string;
  close: () => void;
}

/** The result whose original the address opens, so that *Back* closes it. */
function useLinked(
  place: SearchPlace,
  first: RetrieveResponse | null,
  second: RetrieveResponse | null,
): Linked {
  const { open = "" } = place;
  const [name = "", rank = ""] = open.split("-");
  const response = name === "b" ? second : first;
  const passage = response?.results[Number(rank) - 1] ?? null;
  const last = useRef("");
  useEffect(() => {
    if (open === "" && last.current) document.querySelector<HTMLElement>(`#${last.current} h3 a`)?.focus();
    last.current = /^(result|a|b)-\d+$/.test(open) ? open : "";
  }, [open]);
  const linkTo = (id: string) => address("search", toAddress({ ...place, open: id }));
  const close = () => {
    const { open: _, ...closed } = place;
    go(address("search", toAddress(closed)), { replace: true });
  };
  return { passage: open === "" ? null : passage, linkTo, close };
}

type Search = Loaded<RetrieveResponse | null>;

function useSearch(settings: Settings | null): Search {
  const request = settings?.question.trim() ? toRetrieve(settings) : null;
  const loaded = useLoaded(
    JSON.stringify(request),
    async (client, signal) => request && client.post("/api/retrieve", request, signal),
  );
  return { ...loaded, shown: request && !loaded.error ? loaded.shown : null };
}

/** Say once what was found. */
function useSpoken(first: Search, second: Search, isPair: boolean): void {
  const announce = useAnnounce();
  const text = useMessages("search");
  const [a, b] = [first.data, second.data];
  useEffect(() => {
    if (!a || (isPair && !b)) return;
    if (b && isPair) announce(summary(changes(a.results, b.results)));
    else announce(text.found(a.results.length));
  }, [a, b, isPair, announce, text]);
}

interface AnsweredProps {
  searches: readonly Search[];
  what: string;
  /** The second is the first one again if there is one search. */
  children: (first: RetrieveResponse, second: RetrieveResponse) => ReactNode;
}

/** The results of searches, or those before while new ones load. */
function Answered({ searches, what, children }: AnsweredProps) {
  const failed = searches.find(({ error }) => error);
  const reload = () => {
    for (const search of searches) search.reload();
  };
  if (failed?.error) return <ErrorBox error={failed.error} onRetry={reload} />;
  const [first, second = first] = searches.flatMap(({ shown }) => shown ?? []);
  if (!first || !second || searches.some(({ shown }) => !shown)) return <Coming what={what} />;
  const isWaiting = searches.some(({ isLoading }) => isLoading);
  return (
    <div className={`stack ${isWaiting ? "waiting" : ""}`} aria-busy={isWaiting}>
      {children(first, second)}
    </div>
  );
}

/** The places of the first results. */
function Coming({ what }: { what: string }) {
  return (
    <div className="stack results">
      <Loading what={what} />
      {[4, 3, 4].map((lines, index) => (
        <Skeleton key={index} lines={lines} />
      ))}
    </div>
  );
}

function Start() {
  const text = useMessages("search");
  return (
    <Empty title={text.start} icon="search">
      <p>{text.startHint}</p>
      <Suggestions page="search" />
    </Empty>
  );
}
