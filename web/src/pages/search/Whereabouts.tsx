/** "Why is my document not here?": the first reason that applies, and what to do next. */

import { useEffect, useState } from "react";
import type { ExplainResponse } from "../../api/types";
import { useApp, useLoaded } from "../../context";
import { isKnown } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { TextField } from "../../parts/fields";
import { documentName, plain } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { Badge, Button, Form } from "../../parts/shapes";
import { ErrorBox, Loading } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import { ExplanationDetails } from "./ExplanationDetails";
import { steps } from "./explanation";
import type { SearchPlace } from "./place";
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
  const common = { document: missing, resultsShown, onMissing, onOpen };
  return (
    <details className="card whereabouts" open={missing !== ""}>
      <summary>Why is my document not here?</summary>
      <MissingForm missing={missing} onMissing={onMissing} />
      {missing && (
        <Explained
          {...common}
          title={other ? "With settings A" : null}
          settings={settings}
          onSearch={(next) => onSearch({ ...searched, settings: next })}
        />
      )}
      {missing && other && (
        <Explained
          {...common}
          title="With settings B"
          settings={other}
          onSearch={(next) => onSearch({ ...searched, other: next })}
        />
      )}
    </details>
  );
}

function MissingForm({ missing, onMissing }: { missing: string; onMissing: (document: string) => void }) {
  const [text, setText] = useState(missing);
  useEffect(() => setText(missing), [missing]);
  const keys = useSuggestions(text);
  return (
    <Form
      className="row"
      onSubmit={() => {
        if (text.trim()) onMissing(text.trim());
      }}
    >
      <TextField
        label="File name, words of it, or address (s3://)"
        className="grow"
        autoComplete="off"
        known={keys}
        value={text}
        onChange={setText}
      />
      <Button type="submit" disabled={!text.trim()}>
        Explain
      </Button>
    </Form>
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
  const [label, kind] = data ? (REASONS[data.reason] ?? [data.reason, "warn"]) : [];
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
              <Badge kind={kind}>{label}</Badge>
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

/** What each reason is called, with the kind of its badge. */
const REASONS: Record<ExplainResponse["reason"], readonly [label: string, kind: string]> = {
  found: ["It is here", "good"],
  "not in the bucket": ["No such document", "bad"],
  "not visible": ["No document that you see", "warn"],
  "several documents": ["Which one?", "warn"],
  "not processed yet": ["Still indexing", "warn"],
  failed: ["Indexing failed", "bad"],
  deleted: ["Deleted", "bad"],
  "filtered out": ["Filtered out", "warn"],
  "below relevance": ["Below the minimum", "warn"],
  "ranked below": ["Ranked below", "warn"],
  "not among candidates": ["Not among the candidates", "warn"],
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
        <Button
          key={step.label}
          kind={index === 0 ? "primary" : undefined}
          onClick={() => onSearch(step.settings)}
        >
          {step.label}
        </Button>
      ))}
      {reason === "found" && rank !== null && rank <= resultsShown && (
        <Button onClick={() => document.getElementById(`result-${rank}`)?.focus()}>
          Go to result {rank}
        </Button>
      )}
      {(details.matches ?? []).map((key) => (
        <Button key={key} onClick={() => onMissing(key)}>
          <bdi>{plain(key)}</bdi>
        </Button>
      ))}
      {reason === "not processed yet" && <Button onClick={onRetry}>Look again</Button>}
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
