/** Search, explained: what was found and why, what is missing and why, and what other settings would change. */

import { type ReactNode, useEffect, useState } from "react";
import type { RetrieveResponse } from "../../api/types";
import { type Loaded, useApp, useLoaded } from "../../context";
import { count } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { OriginalDialog, type Shown } from "../../parts/Original";
import { Button, Form } from "../../parts/shapes";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { Targets } from "../../parts/Targets";
import { address, goOr, usePlace } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import "../../style/search.css";
import { Comparison } from "./Comparison";
import { changes, summary } from "./changes";
import { fromAddress, type SearchPlace, toAddress } from "./place";
import { Results } from "./Results";
import { Whereabouts } from "./Whereabouts";

export default function SearchPage() {
  const { session } = useApp();
  const { params } = usePlace();
  const key = params.toString();
  const place = fromAddress(params);
  const [draft, setDraft] = useState<SearchPlace>(place);
  const [open, setOpen] = useState<Shown | null>(null);
  const first = useSearch(place.settings);
  const second = useSearch(place.other);
  useEffect(() => setDraft(fromAddress(new URLSearchParams(key))), [key]);
  useSpoken(first, second, place.other !== null);

  const submit = (next: SearchPlace) => {
    goOr(address("search", toAddress(next)), () => {
      first.reload();
      if (next.other) second.reload();
    });
  };
  const search = (settings: Settings) => submit({ ...place, settings });
  const { question } = place.settings;
  const explained = (
    name: "a" | "b",
    response: RetrieveResponse,
    settings: Settings,
    onSearch: (next: Settings) => void,
  ) => (
    <details className="side">
      <summary>Results of settings {name.toUpperCase()}, explained</summary>
      <Results {...{ name, response, settings, onSearch }} onOpen={setOpen} />
    </details>
  );
  const isChanged =
    toAddress({ ...draft, missing: "" }).toString() !== toAddress({ ...place, missing: "" }).toString();

  return (
    <div className="stack search-page">
      <h1 className="visually-hidden">Search</h1>
      <Form
        className="search-form"
        onSubmit={() => {
          if (draft.settings.question.trim()) submit(withQuestion(draft, draft.settings.question));
        }}
      >
        <div className="question">
          <input
            type="search"
            aria-label="Question"
            dir="auto"
            placeholder="Search your documents"
            value={draft.settings.question}
            onChange={(event) => setDraft(withQuestion(draft, event.target.value))}
          />
          <Button type="submit" kind="primary" disabled={!draft.settings.question.trim()}>
            Search
          </Button>
        </div>
        <Targets
          a={draft.settings}
          b={draft.other}
          onChange={(settings, other) => {
            const next = { ...draft, settings, other };
            setDraft(next);
            if (!other && place.other) submit({ ...next, missing: place.missing });
          }}
        >
          {isChanged && draft.settings.question.trim() !== "" && (
            <span className="small">Press Search to use what you changed.</span>
          )}
        </Targets>
      </Form>
      {question !== "" && (
        <Whereabouts
          place={place}
          resultsShown={place.other === null ? (first.data?.results.length ?? 0) : 0}
          onMissing={(missing) => submit({ ...place, missing })}
          onSearch={submit}
          onOpen={setOpen}
        />
      )}
      {question === "" ? (
        <Start example={session.settings.example} />
      ) : place.other ? (
        <Answered searches={[first, second]} what="both rankings">
          {(before, after) => (
            <>
              <Comparison before={before} after={after} onOpen={setOpen} />
              {explained("a", before, place.settings, (settings) => submit({ ...place, settings }))}
              {explained("b", after, place.other ?? place.settings, (other) => submit({ ...place, other }))}
            </>
          )}
        </Answered>
      ) : (
        <Answered searches={[first]} what="the results">
          {(response) => (
            <Results response={response} settings={place.settings} onSearch={search} onOpen={setOpen} />
          )}
        </Answered>
      )}
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </div>
  );
}

function withQuestion({ settings, other, missing }: SearchPlace, question: string): SearchPlace {
  return { settings: { ...settings, question }, other: other && { ...other, question }, missing };
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
  const [a, b] = [first.data, second.data];
  useEffect(() => {
    if (!a || (isPair && !b)) return;
    if (b && isPair) announce(summary(changes(a.results, b.results)));
    else announce(`${count(a.results.length, "document")} found`);
  }, [a, b, isPair, announce]);
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
  if (!first || !second || searches.some(({ shown }) => !shown)) return <Loading what={what} />;
  const isWaiting = searches.some(({ isLoading }) => isLoading);
  return (
    <div className={`stack ${isWaiting ? "waiting" : ""}`} aria-busy={isWaiting}>
      {children(first, second)}
    </div>
  );
}

function Start({ example }: { example: string | null }) {
  return (
    <Empty title="Search, and see why">
      <p>Each result says how it came to its place, and you can ask why a document is not among them.</p>
      {example && (
        <p>
          For example: <a href={address("search", { q: example })}>{example}</a>
        </p>
      )}
    </Empty>
  );
}
