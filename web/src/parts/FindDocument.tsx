/** A box that finds documents by words of their names, folders and attributes: also those that searches do not find. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import type { FoundDocument } from "../api/types";
import { useApp } from "../context";
import { useMessages } from "../messages";
import { isLacking, meaning, type Status } from "../status";
import "../style/find.css";
import { useAnnounce } from "./Announcer";
import { Icon } from "./Icon";
import { plain } from "./names";
import { Hidden } from "./shapes";
import { spans } from "./spans";
import { sentence } from "./states";

/** The wait for the next letter before documents are asked for. */
const PAUSE_MILLISECONDS = 150;
const SHOWN = 8;

interface Props {
  /** What screen readers call the box. */
  label?: string;
  placeholder?: string;
  /** The words at first. */
  words?: string;
  onChoose: (document: FoundDocument) => void;
}

export function FindDocument({ label, placeholder, words: first = "", onChoose }: Props) {
  const text = useMessages("parts");
  const id = useId();
  const announce = useAnnounce();
  const [words, setWords] = useState(first);
  const [at, setAt] = useState(0);
  const [isOpen, setOpen] = useState(false);
  /** Enter came before the documents: the only one is chosen when it is there. */
  const isHurried = useRef(false);
  const found = useFound(words);
  const { documents } = found;
  const current = Math.min(at, documents.length - 1);
  const isShown = isOpen && words.trim() !== "";

  const choose = (chosen: FoundDocument) => {
    setOpen(false);
    setWords(plain(chosen.name));
    onChoose(chosen);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each list that is shown
  useEffect(() => {
    if (found.state !== "here" || !isShown) return;
    const [only] = documents;
    if (isHurried.current && only && documents.length === 1) choose(only);
    else announce(documents.length === 0 ? text.findNothing : text.findCount(documents.length));
    isHurried.current = false;
  }, [found, isShown]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && documents.length > 0) {
      event.preventDefault();
      setAt(isShown ? (current + step + documents.length) % documents.length : current);
      setOpen(true);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = documents[current];
      if (isShown && found.state === "here" && chosen) choose(chosen);
      else {
        isHurried.current = found.state === "loading";
        setOpen(true);
      }
    } else if (event.key === "Escape" && isShown) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    }
  };
  return (
    <div className="find">
      <div className="icon-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label={label ?? text.find}
          aria-expanded={isShown}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={isShown && documents[current] ? `${id}-${current}` : undefined}
          placeholder={placeholder ?? text.findPlaceholder}
          dir="auto"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          value={words}
          onFocus={() => setOpen(words !== first || first !== "")}
          onChange={(event) => {
            isHurried.current = false;
            setWords(event.target.value);
            setAt(0);
            setOpen(true);
          }}
          onKeyDown={onKeyDown}
          onBlur={() => setOpen(false)}
        />
      </div>
      <div className={isShown ? "find-panel" : "visually-hidden"}>
        <div id={id} role="listbox" aria-label={text.findResults} aria-busy={found.state === "loading"}>
          {isShown &&
            documents.map((each, index) => (
              <Option
                key={each.id}
                id={`${id}-${index}`}
                document={each}
                isCurrent={index === current}
                onHover={() => setAt(index)}
                onChoose={() => choose(each)}
              />
            ))}
        </div>
        {isShown && found.state === "failed" && <p className="find-note">{sentence(found.reason ?? "")}</p>}
        {isShown && found.state === "here" && documents.length === 0 && (
          <p className="find-note">
            {text.findNothing} {text.findHint}
          </p>
        )}
        {isShown && found.more && <p className="find-note">{text.findMore}</p>}
      </div>
    </div>
  );
}

interface OptionProps {
  id: string;
  document: FoundDocument;
  isCurrent: boolean;
  onHover: () => void;
  onChoose: () => void;
}

function Option({ id, document, isCurrent, onHover, onChoose }: OptionProps) {
  const { name, folder, status, reason, attributes, matched } = document;
  const ranges = matched.map(([start, end]) => ({ start, end }));
  const details = [
    plain(folder.replace(/\/$/, "")),
    ...Object.entries(attributes).map(([key, value]) =>
      plain(`${key}: ${Array.isArray(value) ? value.join(", ") : value}`),
    ),
  ].filter(Boolean);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys belong to the box above
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the box above
    <div
      id={id}
      className="find-option"
      role="option"
      aria-selected={isCurrent}
      onMouseMove={isCurrent ? undefined : onHover}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onChoose}
    >
      <StatusDot status={status} />
      <span className="find-name">
        <bdi>
          {spans(name, ranges).map((part, index) =>
            part.inside ? <mark key={index}>{plain(part.text)}</mark> : plain(part.text),
          )}
        </bdi>
        {details.length > 0 && (
          <small>
            {details.map((detail, index) => (
              <bdi key={index}>{detail}</bdi>
            ))}
          </small>
        )}
        {isLacking(status) && reason && <small dir="auto">{plain(reason)}</small>}
      </span>
    </div>
  );
}

/** The status as a dot; in words too, unless searches find all of the document. */
export function StatusDot({ status }: { status: Status }) {
  const { label, badge } = meaning(status);
  return (
    <span className="status-dot" title={label}>
      <span className={`dot ${badge}`} aria-hidden="true" />
      {status === "INDEXED" ? <Hidden>{label}</Hidden> : <small>{label}</small>}
    </span>
  );
}

interface Found {
  documents: readonly FoundDocument[];
  more: boolean;
  state: "none" | "loading" | "here" | "failed";
  reason?: string;
}

const NOTHING: Found = { documents: [], more: false, state: "none" };

/** The documents with these words; those of the words before stay until they are here. */
export function useFound(words: string): Found {
  const { client } = useApp();
  const [found, setFound] = useState(NOTHING);
  const query = words.trim();
  useEffect(() => {
    if (query === "") {
      setFound(NOTHING);
      return;
    }
    setFound((before) => ({ ...before, state: "loading" }));
    const abort = new AbortController();
    const timer = setTimeout(() => {
      client.get("/api/documents/find", { query, limit: SHOWN }, abort.signal).then(
        (answer) => setFound({ ...answer, state: "here" }),
        (error: Error) => {
          if (!abort.signal.aborted) setFound({ ...NOTHING, state: "failed", reason: error.message });
        },
      );
    }, PAUSE_MILLISECONDS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [client, query]);
  return found;
}
