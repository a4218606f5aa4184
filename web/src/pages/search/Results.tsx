/** What a search found: the report of the search, and its results. */

import type { InferredFilter, RetrieveResponse } from "../../api/types";
import { count, isKnown, milliseconds, percent } from "../../format";
import { CopyAs } from "../../parts/CopyAs";
import { CopyButton } from "../../parts/CopyButton";
import { InferredChip } from "../../parts/InferredChip";
import type { Shown } from "../../parts/Original";
import { Button, Card } from "../../parts/shapes";
import { Empty, Notes, Notice } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toParams } from "../../settings";
import { resultKey } from "./changes";
import { CorporaTable, SlicesTable } from "./Report";
import { ResultCard } from "./ResultCard";
import { missingParts, partNames } from "./ranking";

interface Props {
  /** The beginning of the ids of results, if a page has several. */
  name?: string;
  response: RetrieveResponse;
  settings: Settings;
  onSearch: (settings: Settings) => void;
  onOpen: (passage: Shown) => void;
}

export function Results({ name = "result", response, settings, onSearch, onOpen }: Props) {
  const { results } = response;
  const names = partNames(results);
  const scale = Math.max(1, ...results.map((result) => result.score));
  return (
    <div className="results">
      <section className="stack" aria-label="Results">
        <header>
          <h2>{count(results.length, "document")}</h2>
          <p className="small">{facts(response)}</p>
        </header>
        <Remarks
          response={response}
          inferred={settings.infer ? (response.inferred_filter ?? null) : null}
          onWithoutInference={() => onSearch({ ...settings, infer: false })}
        />
        {results.length === 0 && <Nothing settings={settings} onSearch={onSearch} />}
        <ol className="stack">
          {results.map((result, index) => (
            <li key={`${resultKey(result)} ${index}`}>
              <ResultCard
                id={`${name}-${index + 1}`}
                result={result}
                rank={index + 1}
                response={response}
                names={names}
                scale={scale}
                onOpen={onOpen}
              />
            </li>
          ))}
        </ol>
      </section>
      <div className="stack report">
        <Card title="How the search went">
          <SlicesTable response={response} />
          {response.corpora.length > 0 && <CorporaTable corpora={response.corpora} />}
        </Card>
        <Card title="Take it with you">
          <div className="row">
            <CopyButton label="Copy the address" text={() => location.href} />
            <CopyAs kind="search" settings={settings} />
          </div>
          <p>
            <a href={address("ask", toParams(settings))}>Ask this</a> and get an answer.
          </p>
        </Card>
      </div>
    </div>
  );
}

interface RemarksProps {
  response: RetrieveResponse;
  inferred: InferredFilter | null;
  onWithoutInference: () => void;
}

function Remarks({ response, inferred, onWithoutInference }: RemarksProps) {
  return (
    <>
      {inferred && (
        <p>
          <InferredChip inferred={inferred} onRemove={onWithoutInference} />
        </p>
      )}
      {!response.complete && (
        <section className="box warning">
          <h2>The search is incomplete</h2>
          <p>Documents may be missing from these results.</p>
          <ul className="bullets">
            {missingParts(response).map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </section>
      )}
      {response.answerable === false && (
        <Notice kind="warning">
          The documents may not answer this: the most relevant one is {percent(response.best_relevance)}{" "}
          relevant.
        </Notice>
      )}
      <Notes notes={response.notes} />
    </>
  );
}

function Nothing({ settings, onSearch }: { settings: Settings; onSearch: (settings: Settings) => void }) {
  const { corpus, version, facets, minRelevance } = settings;
  const isNarrow =
    corpus !== null || version !== null || minRelevance !== null || Object.keys(facets).length > 0;
  return (
    <Empty title="Nothing found">
      <p>
        {isNarrow
          ? "No document passes the settings of this search."
          : "No document has anything to do with this question, or there are no documents yet."}
      </p>
      {isNarrow && (
        <Button
          onClick={() =>
            onSearch({
              ...settings,
              corpus: null,
              version: null,
              facets: {},
              mode: "prefer",
              minRelevance: null,
            })
          }
        >
          Search everything
        </Button>
      )}
    </Empty>
  );
}

function facts(response: RetrieveResponse): string {
  const { slices, best_relevance, age_seconds } = response;
  return [
    milliseconds(response.milliseconds),
    slices.length > 1 && `${slices.length} searches in parallel`,
    isKnown(best_relevance) && `best relevance ${percent(best_relevance)}`,
    response.complete ? "complete" : "incomplete",
    isKnown(age_seconds) && `from the cache, ${Math.round(age_seconds)} s old`,
  ]
    .filter(Boolean)
    .join(" · ");
}
