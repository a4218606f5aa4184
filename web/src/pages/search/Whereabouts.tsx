/** "Why is my document not here?": the first reason that applies, and what to do next. */
import { useEffect, useId, useState } from "react";
import type { ExplainResponse } from "../../api/types";
import { useApp, useLoaded } from "../../context";
import { useAnnounce } from "../../parts/Announcer";
import { documentName, plain } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { ErrorBox, Loading } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import { ExplanationDetails } from "./ExplanationDetails";
import { steps } from "./explanation";
import type { SearchPlace } from "./place";
import { isKnown } from "./ranking";
import { useSuggestions } from "./suggestions";

interface Props {
  place: SearchPlace;
  /** How many results are on the page; 0 while they load, and if two searches are compared. */
  resultsShown: number;
  onMissing: (document: string) => void;
  onSearch: (place: SearchPlace) => void;
  onOpen: (passage: Shown) => void;
}

export function Whereabouts({ place: searched, resultsShown, onMissing, onSearch, onOpen }: Props) {
  const { settings, other, missing } = searched;
  return (
    <details className="card whereabouts" open={missing !== ""}>
      <summary>Why is my document not here?</summary>
      <MissingForm missing={missing} onMissing={onMissing} />
      {missing && (
        <Explained
          title={other ? "With settings A" : null}
          settings={settings}
          document={missing}
          resultsShown={resultsShown}
          onMissing={onMissing}
          onSearch={(next) => onSearch({ ...searched, settings: next })}
          onOpen={onOpen}
        />
      )}
      {missing && other && (
        <Explained
          title="With settings B"
          settings={other}
          document={missing}
          resultsShown={0}
          onMissing={onMissing}
          onSearch={(next) => onSearch({ ...searched, other: next })}
          onOpen={onOpen}
        />
      )}
    </details>
  );
}

function MissingForm({ missing, onMissing }: { missing: string; onMissing: (document: string) => void }) {
  const id = useId();
  const [text, setText] = useState(missing);
  useEffect(() => setText(missing), [missing]);
  const keys = useSuggestions(text);
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) onMissing(text.trim());
      }}
    >
      <label htmlFor={id}>File name, words of it, or address (s3://)</label>
      <input
        id={id}
        className="grow"
        dir="auto"
        autoComplete="off"
        list={`${id}-known`}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <datalist id={`${id}-known`}>
        {keys.map((key) => (
          <option key={key} value={key} />
        ))}
      </datalist>
      <button type="submit" disabled={!text.trim()}>
        Explain
      </button>
    </form>
  );
}

interface ExplainedProps {
  title: string | null;
  settings: Settings;
  document: string;
  resultsShown: number;
  onMissing: (document: string) => void;
  onSearch: (settings: Settings) => void;
  onOpen: (passage: Shown) => void;
}

function Explained(props: ExplainedProps) {
  const { title, settings, document: name, resultsShown, onMissing, onSearch, onOpen } = props;
  const announce = useAnnounce();
  const request = { ...toRetrieve(settings), document: name };
  const explained = useLoaded(JSON.stringify(request), (client, signal) =>
    client.post("/api/explain", request, signal),
  );
  const { data } = explained;
  useEffect(() => {
    if (data) announce(data.text);
  }, [data, announce]);
  return (
    <section className="stack" aria-label={title ?? "The reason"}>
      {title && <h2>{title}</h2>}
      {explained.error && <ErrorBox error={explained.error} onRetry={explained.reload} />}
      {!data && !explained.error && <Loading what="the reason" />}
      {data && (
        <>
          <div className={`box ${data.found ? "info" : "warning"}`}>
            <p className="row">
              <span className={`badge ${BADGES[data.reason] ?? "warn"}`}>
                {LABELS[data.reason] ?? data.reason}
              </span>
              <strong dir="auto">{documentName(data.document)}</strong>
            </p>
            <p className="reason" dir="auto">
              {plain(data.text)}
            </p>
            <NextSteps
              explanation={data}
              settings={settings}
              resultsShown={resultsShown}
              onSearch={onSearch}
              onRetry={explained.reload}
              onMissing={onMissing}
            />
          </div>
          <ExplanationDetails explanation={data} onOpen={onOpen} />
        </>
      )}
    </section>
  );
}

const BADGES: Partial<Record<ExplainResponse["reason"], string>> = {
  found: "good",
  failed: "bad",
  deleted: "bad",
  "not in the bucket": "bad",
};

const LABELS: Partial<Record<ExplainResponse["reason"], string>> = {
  found: "It is here",
  "not in the bucket": "No such document",
  "not visible": "No document that you see",
  "several documents": "Which one?",
  "not processed yet": "Still indexing",
  failed: "Indexing failed",
  deleted: "Deleted",
  "filtered out": "Filtered out",
  "below relevance": "Below the minimum",
  "ranked below": "Ranked below",
  "not among candidates": "Not among the candidates",
};

interface NextProps {
  explanation: ExplainResponse;
  settings: Settings;
  resultsShown: number;
  onSearch: (settings: Settings) => void;
  onRetry: () => void;
  onMissing: (document: string) => void;
}

function NextSteps({ explanation, settings, resultsShown, onSearch, onRetry, onMissing }: NextProps) {
  const { me } = useApp();
  const { reason, rank, details } = explanation;
  return (
    <p className="row">
      {steps(explanation, settings).map((step, index) => (
        <button
          key={step.label}
          type="button"
          className={index === 0 ? "primary" : ""}
          onClick={() => onSearch(step.settings)}
        >
          {step.label}
        </button>
      ))}
      {reason === "found" && rank !== null && rank <= resultsShown && (
        <button type="button" onClick={() => document.getElementById(`result-${rank}`)?.focus()}>
          Go to result {rank}
        </button>
      )}
      {(details.matches ?? []).map((key) => (
        <button key={key} type="button" onClick={() => onMissing(key)}>
          <bdi>{plain(key)}</bdi>
        </button>
      ))}
      {reason === "not processed yet" && (
        <button type="button" onClick={onRetry}>
          Look again
        </button>
      )}
      {reason === "not in the bucket" && me.rights.includes("write") && (
        <a href={address("documents")}>Upload a document</a>
      )}
      {isKnown(details.status) && <DocumentLink uri={explanation.document} />}
    </p>
  );
}

/** A way to the page of a document, which is addressed by its id. */
function DocumentLink({ uri }: { uri: string }) {
  const list = useLoaded(`document ${uri}`, (client, signal) =>
    client.get("/api/documents", { uri }, signal),
  );
  const id = list.data?.documents[0]?.id;
  return id ? <a href={address("documents", {}, id)}>Open the document</a> : null;
}
