/** Everything that can be opened, by its words: ⌘K. A combobox whose list stays open. */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { chooseLanguage, LANGUAGES, type Language, useMessages } from "../messages";
import { Dialog } from "../parts/Dialog";
import { useFound } from "../parts/FindDocument";
import { Icon, type IconName } from "../parts/Icon";
import { plain } from "../parts/names";
import { address, go } from "../route";
import { meaning } from "../status";
import { THEMES, theme } from "../theme";
import type { PageEntry } from "./Frame";

export interface Entry {
  id: string;
  group: string;
  icon: IconName;
  title: string;
  /** Where it is. */
  detail?: string;
  run: () => void;
}

interface Props {
  pages: readonly PageEntry[];
  onClose: () => void;
}

export function Palette({ pages, onClose }: Props) {
  const text = useMessages("frame");
  const id = useId();
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const { documents } = useFound(words);
  const list = useRef<HTMLDivElement>(null);
  const fixed = useMemo(() => {
    const entries: Entry[] = [
      {
        id: "new",
        group: text.groupActions,
        icon: "add",
        title: text.newQuestion,
        run: () => go(address("ask", { new: "on" })),
      },
      ...pages.map(
        (page): Entry => ({
          id: page.name,
          group: text.groupPages,
          icon: page.icon,
          title: text.page[page.name],
          run: () => go(address(page.name)),
        }),
      ),
      ...THEMES.map(
        (each): Entry => ({
          id: `theme-${each}`,
          group: text.groupActions,
          icon: each,
          title: text.setTheme(text.themes[each]),
          run: () => theme.choose(each),
        }),
      ),
      ...(Object.entries(LANGUAGES) as [Language, string][]).map(
        ([language, name]): Entry => ({
          id: `language-${language}`,
          group: text.groupActions,
          icon: "language",
          title: text.setLanguage(name),
          run: () => void chooseLanguage(language),
        }),
      ),
    ];
    return entries;
  }, [pages, text]);
  const asked = words.trim();
  const entries = useMemo(() => {
    const found = matching(fixed, asked);
    if (asked === "") return found.filter(({ id }) => !/^(theme|language)-/.test(id));
    const named = documents.map(
      ({ id, name, folder, status }): Entry => ({
        id: `document-${id}`,
        group: text.groupDocuments,
        icon: "file",
        title: plain(name),
        detail: [plain(folder), status === "INDEXED" ? "" : meaning(status).label]
          .filter(Boolean)
          .join(" · "),
        run: () => go(address("documents", {}, id)),
      }),
    );
    const others: Entry[] = [
      {
        id: "ask-this",
        group: text.groupActions,
        icon: "ask",
        title: text.askThis(asked),
        run: () => go(address("ask", { q: asked })),
      },
      {
        id: "search-this",
        group: text.groupActions,
        icon: "search",
        title: text.searchThis(asked),
        run: () => go(address("search", { q: asked })),
      },
    ];
    return grouped([...found, ...named, ...others]);
  }, [fixed, documents, asked, text]);
  const current = Math.min(at, entries.length - 1);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });

  return (
    <Dialog title={text.palette} className="palette" isTitleHidden onClose={onClose}>
      {(close) => {
        const run = (entry: Entry | undefined) => {
          if (!entry) return;
          close();
          entry.run();
        };
        const press = (event: KeyboardEvent) => {
          if (event.nativeEvent.isComposing) return;
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setAt((current + step + entries.length) % entries.length);
          } else if (event.key === "Enter") {
            event.preventDefault();
            run(entries[current]);
          }
        };
        return (
          <>
            <div className="palette-box">
              <Icon name="search" />
              <input
                role="combobox"
                aria-label={text.palette}
                aria-expanded="true"
                aria-controls={id}
                aria-autocomplete="list"
                aria-activedescendant={entries[current] && `${id}-${entries[current].id}`}
                placeholder={text.palettePlaceholder}
                dir="auto"
                autoComplete="off"
                spellCheck={false}
                value={words}
                onChange={(event) => {
                  setWords(event.target.value);
                  setAt(0);
                }}
                onKeyDown={press}
              />
            </div>
            <div className="palette-list" id={id} ref={list} role="listbox" aria-label={text.paletteResults}>
              {inGroups(entries).map(([group, members]) => (
                // biome-ignore lint/a11y/useSemanticElements: a group of options has no element of its own
                <div key={group} role="group" aria-label={group}>
                  <p className="palette-group" aria-hidden="true">
                    {group}
                  </p>
                  {members.map((entry) => (
                    <Option
                      key={entry.id}
                      id={`${id}-${entry.id}`}
                      entry={entry}
                      isCurrent={entry === entries[current]}
                      onHover={() => setAt(entries.indexOf(entry))}
                      onRun={() => run(entry)}
                    />
                  ))}
                </div>
              ))}
            </div>
            <p className="visually-hidden" role="status">
              {text.paletteFound(entries.length)}
            </p>
          </>
        );
      }}
    </Dialog>
  );
}

interface OptionProps {
  id: string;
  entry: Entry;
  isCurrent: boolean;
  onHover: () => void;
  onRun: () => void;
}

function Option({ id, entry, isCurrent, onHover, onRun }: OptionProps): ReactNode {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys belong to the box above
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the box above
    <div
      id={id}
      className="palette-option"
      role="option"
      aria-selected={isCurrent}
      onMouseMove={isCurrent ? undefined : onHover}
      onClick={onRun}
    >
      <Icon name={entry.icon} />
      <span dir="auto">{entry.title}</span>
      {entry.detail && <small dir="auto">{entry.detail}</small>}
      {isCurrent && <Icon name="enter" size={14} />}
    </div>
  );
}

/** Every word of the text begins a word of the entry. */
export function matching(entries: readonly Entry[], text: string): Entry[] {
  const wanted = wordsOf(text);
  return entries.filter(({ title }) => {
    const own = wordsOf(title);
    return wanted.every((word) => own.some((each) => each.startsWith(word)));
  });
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The entries of a group next to each other, in the order in which the groups begin. */
function grouped(entries: readonly Entry[]): Entry[] {
  return inGroups(entries).flatMap(([, members]) => members);
}

function inGroups(entries: readonly Entry[]): [string, Entry[]][] {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  return [...groups];
}
