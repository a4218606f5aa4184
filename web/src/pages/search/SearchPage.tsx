/** Search, explained: what was found and why, what is missing and why, and what other settings would change. */
import { useEffect, useRef, useState } from "react";
import type { RetrieveResponse } from "../../api/types";
import { type Loaded, useApp, useLoaded } from "../../context";
import { useAnnounce } from "../../parts/Announcer";
import { OriginalDialog, type Shown } from "../../parts/Original";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { TestTarget } from "../../parts/TestTarget";
import { address, goOr, usePlace } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import "../../style/search.css";
import { Comparison } from "./Comparison";
import { changes, summary } from "./changes";
import { fromAddress, type SearchPlace, toAddress } from "./place";
import { count, RelevanceField, Results } from "./Results";
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
  const isChanged =
    toAddress({ ...draft, missing: "" }).toString() !== toAddress({ ...place, missing: "" }).toString();

  return (
    <div className="stack search-page">
      <h1 className="visually-hidden">Search</h1>
      <form
        className="search-form"
        onSubmit={(event) => {
          event.preventDefault();
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
          <button type="submit" className="primary" disabled={!draft.settings.question.trim()}>
            Search
          </button>
        </div>
        <div className={draft.other ? "targets" : ""}>
          <Target
            legend={draft.other ? "Settings A" : "Test Target"}
            settings={draft.settings}
            onChange={(settings) => setDraft({ ...draft, settings })}
          />
          {draft.other && (
            <Target
              legend="Settings B"
              settings={draft.other}
              onChange={(other) => setDraft({ ...draft, other })}
            />
          )}
        </div>
        <div className="row form-end">
          <label className="row">
            <input
              type="checkbox"
              checked={draft.other !== null}
              onChange={(event) => {
                const next = { ...draft, other: event.target.checked ? { ...draft.settings } : null };
                setDraft(next);
                if (!event.target.checked && place.other) submit({ ...next, missing: place.missing });
              }}
            />
            Compare with other settings
          </label>
          {isChanged && draft.settings.question.trim() !== "" && (
            <span className="small">Press Search to use what you changed.</span>
          )}
        </div>
      </form>
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
        <Pair first={first} second={second} place={place} onOpen={setOpen} onSearch={submit} />
      ) : (
        <Answered search={first}>
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

interface TargetProps {
  legend: string;
  settings: Settings;
  onChange: (settings: Settings) => void;
}

function Target({ legend, settings, onChange }: TargetProps) {
  return (
    <TestTarget legend={legend} settings={settings} onChange={onChange}>
      <RelevanceField
        value={settings.minRelevance}
        onChange={(minRelevance) => onChange({ ...settings, minRelevance })}
      />
    </TestTarget>
  );
}

interface Search extends Loaded<RetrieveResponse | null> {
  /** The results, or those before while new ones load. */
  shown: RetrieveResponse | null;
}

function useSearch(settings: Settings | null): Search {
  const request = settings?.question.trim() ? toRetrieve(settings) : null;
  const loaded = useLoaded(
    JSON.stringify(request),
    async (client, signal) => request && client.post("/api/retrieve", request, signal),
  );
  const last = useRef<RetrieveResponse | null>(null);
  if (loaded.data) last.current = loaded.data;
  return { ...loaded, shown: loaded.data ?? (request && !loaded.error ? last.current : null) };
}

/** Say once what was found. */
function useSpoken(first: Search, second: Search, isPair: boolean): void {
  const announce = useAnnounce();
  const [a, b] = [first.data, second.data];
  useEffect(() => {
    if (!a || (isPair && !b)) return;
    if (b && isPair) announce(summary(changes(a.results, b.results)));
    else announce(`${count(a.results.length)} found`);
  }, [a, b, isPair, announce]);
}

function Answered({
  search,
  children,
}: {
  search: Search;
  children: (response: RetrieveResponse) => React.ReactNode;
}) {
  if (search.error) return <ErrorBox error={search.error} onRetry={search.reload} />;
  if (!search.shown) return <Loading what="the results" />;
  return (
    <div className={search.isLoading ? "waiting" : ""} aria-busy={search.isLoading}>
      {children(search.shown)}
    </div>
  );
}

interface PairProps {
  first: Search;
  second: Search;
  place: SearchPlace;
  onOpen: (passage: Shown) => void;
  onSearch: (place: SearchPlace) => void;
}

function Pair({ first, second, place, onOpen, onSearch }: PairProps) {
  const { settings, other } = place;
  const failed = [first, second].find((search) => search.error);
  if (failed?.error) {
    return (
      <ErrorBox
        error={failed.error}
        onRetry={() => {
          first.reload();
          second.reload();
        }}
      />
    );
  }
  if (!first.shown || !second.shown || !other) return <Loading what="both rankings" />;
  const isWaiting = first.isLoading || second.isLoading;
  return (
    <div className={`stack ${isWaiting ? "waiting" : ""}`} aria-busy={isWaiting}>
      <Comparison before={first.shown} after={second.shown} onOpen={onOpen} />
      <details className="side">
        <summary>Results of settings A, explained</summary>
        <Results
          name="a"
          response={first.shown}
          settings={settings}
          onSearch={(next) => onSearch({ ...place, settings: next })}
          onOpen={onOpen}
        />
      </details>
      <details className="side">
        <summary>Results of settings B, explained</summary>
        <Results
          name="b"
          response={second.shown}
          settings={other}
          onSearch={(next) => onSearch({ ...place, other: next })}
          onOpen={onOpen}
        />
      </details>
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
