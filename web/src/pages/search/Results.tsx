/** What a search found: its results, and below them how it went. */

import type { RetrieveResponse } from "../../api/types";
import { isKnown, milliseconds } from "../../format";
import { useMessages } from "../../messages";
import { CopyAs } from "../../parts/CopyAs";
import { Icon } from "../../parts/Icon";
import { documentName, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
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
  /** The address that opens the original of a result. */
  linkTo: (id: string) => string;
  onSearch: (settings: Settings) => void;
}

export function Results({ name = "result", response, settings, linkTo, onSearch }: Props) {
  const text = useMessages("search");
  const { results } = response;
  const names = partNames(results);
  const scale = Math.max(1, ...results.map((result) => result.score));
  return (
    <section className="stack results" aria-label={text.results}>
      <header className="row spread">
        <h2>{text.documents(results.length)}</h2>
        <div className="row">
          <a className="button quiet" href={address("ask", toParams(settings))}>
            <Icon name="ask" size={16} /> {text.askThis}
          </a>
          <CopyAs kind="search" settings={settings} />
        </div>
      </header>
      <Remarks response={response} />
      {results.length === 0 && <Nothing settings={settings} onSearch={onSearch} />}
      <ol className="found-list">
        {results.map((result, index) => {
          const id = `${name}-${index + 1}`;
          return (
            <li key={`${resultKey(result)} ${index}`}>
              <ResultCard
                {...{ id, result, response, settings, names, scale, onSearch }}
                rank={index + 1}
                link={linkTo(id)}
              />
            </li>
          );
        })}
      </ol>
      <details className="search-report">
        <summary>
          {text.report} <span className="small">{facts(response, text.cached)}</span>
        </summary>
        <SlicesTable response={response} />
        {response.corpora.length > 0 && <CorporaTable corpora={response.corpora} />}
      </details>
    </section>
  );
}

function Remarks({ response }: { response: RetrieveResponse }) {
  const text = useMessages("search");
  return (
    <>
      {!response.complete && (
        <section className="box warning">
          <h2>{text.incomplete}</h2>
          <p>{text.incompleteHint}</p>
          <ul className="bullets">
            {missingParts(response).map((part) => (
              <li key={part}>{part}</li>
            ))}
          </ul>
        </section>
      )}
      {response.missing && (
        <Notice kind="warning">
          <span dir="auto">{plain(response.missing.text)} </span>
          {response.missing.documents.map(({ id, key }) => (
            <span key={id}>
              <a href={address("documents", {}, id)}>
                <bdi>{documentName(key)}</bdi>
              </a>{" "}
            </span>
          ))}
        </Notice>
      )}
      {response.answerable === false && <Notice kind="warning">{text.notAnswerable}</Notice>}
      <Notes notes={response.notes} />
    </>
  );
}

function Nothing({ settings, onSearch }: { settings: Settings; onSearch: (settings: Settings) => void }) {
  const text = useMessages("search");
  const { corpus, version, facets, minRelevance } = settings;
  const isNarrow =
    corpus !== null || version !== null || minRelevance !== null || Object.keys(facets).length > 0;
  const everything = { corpus: null, version: null, facets: {}, mode: "prefer", minRelevance: null } as const;
  return (
    <Empty title={text.nothing} icon="search">
      <p>{isNarrow ? text.nothingNarrow : text.nothingAtAll}</p>
      {isNarrow && (
        <Button onClick={() => onSearch({ ...settings, ...everything })}>{text.searchEverything}</Button>
      )}
    </Empty>
  );
}

function facts(
  { milliseconds: time, age_seconds }: RetrieveResponse,
  cached: (seconds: number) => string,
): string {
  return [milliseconds(time), isKnown(age_seconds) && cached(Math.round(age_seconds))]
    .filter(Boolean)
    .join(" · ");
}
