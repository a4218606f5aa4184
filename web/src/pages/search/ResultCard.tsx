/** One result: its document, its passage with the words that match, its attributes, and why it is here. */

import type { RetrievedResult, RetrieveResponse } from "../../api/types";
import { useMessages } from "../../messages";
import { matches } from "../../parts/matches";
import { documentKey, documentName, place, plain } from "../../parts/names";
import { PagePicture } from "../../parts/PagePicture";
import { Button, Where } from "../../parts/shapes";
import { go } from "../../route";
import type { Scalar, Settings } from "../../settings";
import { Excerpt } from "./Excerpt";
import { Why } from "./Why";

interface Props {
  id: string;
  result: RetrievedResult;
  rank: number;
  response: RetrieveResponse;
  settings: Settings;
  /** Names of all parts of scores, in the order of their colours. */
  names: string[];
  /** The score of a full bar. */
  scale: number;
  /** The address that opens its original. */
  link: string;
  onSearch: (settings: Settings) => void;
}

export function ResultCard({ id, result, rank, response, settings, names, scale, link, onSearch }: Props) {
  const text = useMessages("search");
  const others = (result.passages ?? []).slice(1);
  const where = [result.source && folderOf(documentKey(result.source)), place(result)].filter(Boolean);
  return (
    <article className="result" id={id} tabIndex={-1} aria-label={text.result(rank)}>
      <header>
        <h3 className="result-name" dir="auto">
          <span className="place" aria-hidden="true">
            {rank}
          </span>
          <a href={link}>{documentName(result.source)}</a>
        </h3>
        {where.length > 0 && (
          <p className="small">
            <bdi>{where.join(" › ")}</bdi>
          </p>
        )}
      </header>
      <div className="found-text">
        <Excerpt text={result.content} marked={matches(settings.question, result.content)} />
        <PagePicture link={result.picture} uri={result.source} onOpen={() => go(link)} />
      </div>
      <Tags rank={rank} result={result} settings={settings} onSearch={onSearch} />
      <div className="more-of">
        <details>
          <summary className="small">{text.why}</summary>
          <Why result={result} rank={rank} response={response} names={names} scale={scale} />
        </details>
        {others.length > 0 && (
          <details>
            <summary className="small">{text.morePassages(others.length)}</summary>
            <ul className="stack">
              {others.map((passage, index) => (
                <li key={index}>
                  <Where of={passage} />
                  <Excerpt text={passage.content} marked={matches(settings.question, passage.content)} />
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </article>
  );
}

function folderOf(key: string): string {
  return key.split("/").slice(0, -1).join("/");
}

/** Those that the document store adds for itself. */
const INTERNAL = /^(x-amz-|amazon|_)/i;
const SHOWN = 6;

interface TagsProps {
  rank: number;
  result: RetrievedResult;
  settings: Settings;
  onSearch: (settings: Settings) => void;
}

/** Attributes; a click searches only documents that have the value, or no longer. */
function Tags({ rank, result, settings, onSearch }: TagsProps) {
  const text = useMessages("search");
  const tags = Object.entries(result.metadata)
    .filter(([name]) => !INTERNAL.test(name))
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).filter(isScalar).map((each) => [name, each] as const),
    );
  if (tags.length === 0) return null;
  const tag = ([name, value]: readonly [string, Scalar]) => {
    const chosen = settings.facets[name] ?? [];
    const isOn = chosen.includes(value);
    const { [name]: _, ...others } = settings.facets;
    const rest = chosen.filter((each) => each !== value);
    const facets = isOn
      ? rest.length > 0
        ? { ...others, [name]: rest }
        : others
      : { ...others, [name]: [value] };
    const label = (isOn ? text.filterOff : text.filterBy)(plain(name), plain(String(value)));
    return (
      <li key={`${name} ${value}`}>
        <Button
          className="tag"
          aria-pressed={isOn}
          title={label}
          onClick={() => onSearch({ ...settings, facets, mode: isOn ? settings.mode : "strict" })}
        >
          <bdi>{plain(name)}:</bdi>
          <bdi>{plain(String(value))}</bdi>
        </Button>
      </li>
    );
  };
  return (
    <ul className="tags" aria-label={text.attributes(rank)}>
      {tags.slice(0, SHOWN).map(tag)}
      {tags.length > SHOWN && (
        <li>
          <details>
            <summary className="small">{text.moreAttributes(tags.length - SHOWN)}</summary>
            <ul className="tags">{tags.slice(SHOWN).map(tag)}</ul>
          </details>
        </li>
      )}
    </ul>
  );
}

function isScalar(value: unknown): value is Scalar {
  return ["string", "number", "boolean"].includes(typeof value);
}
