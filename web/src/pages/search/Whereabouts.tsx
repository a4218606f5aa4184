/** "Why is my document not here?": the first reason that applies, and what to do next. */

import { useEffect, useRef } from "react";
import type { ExplainResponse } from "../../api/types";
import { useApp, useLoaded } from "../../context";
import { isKnown } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { FindDocument } from "../../parts/FindDocument";
import { documentName, plain } from "../../parts/names";
import type { Shown } from "../../parts/Original";
import { Badge, Button, IconButton } from "../../parts/shapes";
import { ErrorBox, Loading } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toRetrieve } from "../../settings";
import { ExplanationDetails } from "./ExplanationDetails";
import { steps, told } from "./explanation";
import type { SearchPlace } from "./place";

interface Props {
  place: SearchPlace;
  /** How many results are on the page; 0 while they load, and if two searches are compared. */
  resultsShown: number;
  onMissing: (document: string) => void;
  onSearch: (place: SearchPlace) => void;
  onOpen: (passage: Shown) => void;
  onClose: () => void;
}

export function Whereabouts({ place: searched, resultsShown, onMissing, onSearch, onOpen, onClose }: Props) {
  const text = useMessages("search");
  const { settings, other, missing } = searched;
  const box = useRef<HTMLElement>(null);
  const common = { document: missing, resultsShown, onMissing, onOpen };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only people who open it want to write
  useEffect(() => {
    if (!missing) box.current?.querySelector("input")?.focus();
  }, []);
  return (
    <section className="card stack whereabouts" aria-label={text.missingTitle} ref={box}>
      <div className="row spread">
        <h2>{text.missingTitle}</h2>
        <IconButton icon="close" label={text.closeMissing} onClick={onClose} />
      </div>
      {!missing && <p className="small">{text.missingHint}</p>}
      <FindDocument label={text.missing} onChoose={(document) => onMissing(document.key)} />
      {missing && (
        <Explained
          {...common}
          title={other ? text.withSettings("A") : null}
          settings={settings}
          onSearch={(next) => onSearch({ ...searched, settings: next })}
        />
      )}
      {missing && other && (
        <Explained
          {...common}
          title={text.withSettings("B")}
          settings={other}
          onSearch={(next) => onSearch({ ...searched, other: next })}
        />
      )}
    </section>
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
  const text = useMessages("search");
  const announce = useAnnounce();
  const request = { ...toRetrieve(settings), document: name };
  const explained = useLoaded(JSON.stringify(request), (client, signal) =>
    client.post("/api/explain", request, signal),
  );
  const { data } = explained;
  const reason = data && told(data, resultsShown);
  useEffect(() => {
    if (reason) announce(reason);
  }, [reason, announce]);
  return (
    <section className="stack" aria-label={title ?? text.reason}>
      {title && <h3>{title}</h3>}
      {explained.error && <ErrorBox error={explained.error} onRetry={explained.reload} />}
      {!data && !explained.error && <Loading what={text.theReason} />}
      {data && (
        <>
          <div className={`box ${data.found ? "info" : "warning"}`}>
            <p className="row">
              <Badge kind={BADGES[data.reason] ?? "warn"}>{text.reasons[data.reason] ?? data.reason}</Badge>
              <strong>
                <bdi>{documentName(data.document)}</bdi>
              </strong>
            </p>
            <p className="reason" dir="auto">
              {reason}
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
          <ExplanationDetails explanation={data} question={settings.question} onOpen={onOpen} />
        </>
      )}
    </section>
  );
}

/** The kinds of badges; a filter or a rank is a warning. */
const BADGES: Partial<Record<ExplainResponse["reason"], string>> = {
  found: "good",
  "not in the bucket": "bad",
  failed: "bad",
  deleted: "bad",
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
  const text = useMessages("search");
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
          {text.goToResult(rank)}
        </Button>
      )}
      {(details.matches ?? []).map((key) => (
        <Button key={key} onClick={() => onMissing(key)}>
          <bdi>{plain(key)}</bdi>
        </Button>
      ))}
      {reason === "not processed yet" && <Button onClick={onRetry}>{text.lookAgain}</Button>}
      {reason === "not in the bucket" && me.rights.includes("write") && (
        <a href={address("documents")}>{text.uploadOne}</a>
      )}
      {isKnown(details.status) && <DocumentLink uri={explanation.document} />}
    </p>
  );
}

/** A way to the page of a document, which is addressed by its id. */
function DocumentLink({ uri }: { uri: string }) {
  const text = useMessages("search");
  const list = useLoaded(`document ${uri}`, (client, signal) =>
    client.get("/api/documents", { uri }, signal),
  );
  const id = list.data?.documents[0]?.id;
  return id ? <a href={address("documents", {}, id)}>{text.openDocument}</a> : null;
}
