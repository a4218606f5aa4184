/** Who was seen: their groups, what they see, and where they may write. */

import { Fragment, useEffect, useRef, useState } from "react";
import type { components } from "../../api/schema";
import { useApp } from "../../context";
import { ago, time } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { TextField } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Badge, Button, Hidden } from "../../parts/shapes";
import { Await, Empty, ErrorBox, Notice } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address, go, usePlace } from "../../route";
import { usePages } from "./pages";
import { groupsOf, matches, type Person, partsOf, viewerOf } from "./seen";

/** Matches that are shown before more are looked for. */
const ENOUGH = 20;

type Erased = components["schemas"]["ErasedPerson"];

export function PeopleTab() {
  const text = useMessages("admin").people;
  const { params } = usePlace();
  const words = params.get("q") ?? "";
  const [erasing, setErasing] = useState<Person | null>(null);
  const [erased, setErased] = useState<readonly Erased[]>([]);
  const { token, isLoading, error, more, ...pages } = usePages<Person>(async (client, from, signal) => {
    const { people, next_token } = await client.get("/api/people", { next_token: from }, signal);
    return { rows: people, token: next_token };
  });
  const rows = pages.rows.filter(({ principal }) => !erased.some((each) => each.principal === principal));
  const shown = rows.filter((person) => matches(person, words));
  const isSearching = words.trim() !== "" && token !== null && shown.length < ENOUGH && !error;
  useEffect(() => {
    if (isSearching && !isLoading) more();
  }, [isSearching, isLoading, more]);
  if (rows.length === 0 && (error || isLoading))
    return <Await of={{ error, reload: more }} what={text.loading} lines={6} />;
  const last = erased.at(-1);
  if (rows.length === 0 && !last)
    return (
      <Empty title={text.none} icon="people">
        <p>{text.noneHint}</p>
      </Empty>
    );
  const filter = (next: string) => go(address("admin", next ? { q: next } : {}, "people"), { replace: true });
  return (
    <>
      <p className="small">{text.hint}</p>
      {last && <WhatWasErased key={last.principal} erased={last} />}
      <div className="fields filter">
        <TextField
          label={text.filter}
          type="search"
          className="grow"
          value={words}
          onChange={filter}
          autoComplete="off"
          spellCheck={false}
        />
        <p className="small found" role="status">
          {isSearching ? text.searching : text.found(shown.length, rows.length, token === null)}
        </p>
      </div>
      {shown.length > 0 ? (
        <People people={shown} onErase={setErasing} />
      ) : (
        !isSearching &&
        !error && (
          <Empty title={text.noMatch} icon="people">
            <p>{text.noMatchHint}</p>
            <p>
              <a href={address("admin", {}, "view-as")}>{text.viewAs}</a>
            </p>
          </Empty>
        )
      )}
      {erasing && (
        <ConfirmErasure
          person={erasing}
          onClose={(what) => {
            setErasing(null);
            if (what) setErased([...erased, what]);
          }}
        />
      )}
      {error && <ErrorBox error={error} onRetry={more} />}
      {token && !error && !isSearching && (
        <p>
          <Button aria-disabled={isLoading} onClick={() => isLoading || more()}>
            {text.more}
          </Button>
        </p>
      )}
    </>
  );
}

interface PeopleProps {
  people: readonly Person[];
  onErase: (person: Person) => void;
}

function People({ people, onErase }: PeopleProps) {
  const text = useMessages("admin").people;
  return (
    <Table
      isCards
      className="people-table"
      rows={people}
      keyOf={({ principal }) => principal}
      columns={[
        [text.name, (person) => <Name person={person} />],
        [
          text.groups,
          ({ principal, groups }) => (
            <Tags
              names={groupsOf(principal, groups).map(shortened)}
              none={principal.startsWith("user:") ? text.noGroups : "–"}
            />
          ),
        ],
        [
          text.sees,
          ({ labels }) => (labels === null ? text.everything : <Tags names={labels} none={text.nothing} />),
        ],
        [text.writes, (person) => <Folders person={person} />],
        [
          text.seen,
          ({ last_seen }) => (
            <time dateTime={last_seen} title={time(last_seen)}>
              {ago(last_seen)}
            </time>
          ),
        ],
        [
          <Hidden key="actions">{text.actions}</Hidden>,
          (person) => <Actions person={person} onErase={onErase} />,
        ],
      ]}
    />
  );
}

function Name({ person: { principal, rights } }: { person: Person }) {
  const text = useMessages("admin").people;
  const [kind, name] = partsOf(principal);
  const label = kind === "user" ? "" : (text.kinds[kind] ?? kind);
  return (
    <>
      <bdi>{plain(name)}</bdi> {label && <Badge>{label}</Badge>}
      <div className="small">
        {text.rights}: {rights.map((right) => text.rightNames[right] ?? right).join(", ") || text.noRights}
      </div>
    </>
  );
}

/** Groups without their kind, which their column has. */
function shortened(principal: string): string {
  const [kind, name] = partsOf(principal);
  return kind === "group" ? name : principal;
}

/** So many names are shown; with more, the others on demand. */
const SHOWN = 3;

function Tags({ names, none }: { names: readonly string[]; none: string }) {
  const text = useMessages("admin").people;
  if (names.length === 0) return <span className="small">{none}</span>;
  const shown = names.length > SHOWN ? names.slice(0, SHOWN - 1) : names;
  const others = names.slice(shown.length);
  return (
    <div>
      <TagList names={shown} />
      {others.length > 0 && (
        <details>
          <summary className="small">{text.others(others.length)}</summary>
          <TagList names={others} />
        </details>
      )}
    </div>
  );
}

function TagList({ names }: { names: readonly string[] }) {
  return (
    <ul className="row names">
      {names.map((name) => (
        <li key={name} className="badge" dir="auto">
          {plain(name)
            .split(/(?<=\/)/)
            .map((part, place) => (
              <Fragment key={place}>
                {part}
                <wbr />
              </Fragment>
            ))}
        </li>
      ))}
    </ul>
  );
}

function Folders({ person: { writable } }: { person: Person }) {
  const text = useMessages("admin").people;
  if (writable.some(({ prefix }) => prefix === "")) return text.everywhere;
  return <Tags names={writable.map(({ prefix }) => prefix)} none={text.nowhere} />;
}

function Actions({ person, onErase }: { person: Person; onErase: (person: Person) => void }) {
  const text = useMessages("admin").people;
  const name = plain(partsOf(person.principal)[1]);
  return (
    <span className="row">
      <a
        className="button quiet"
        href={address("admin", { as: viewerOf(person) }, "view-as")}
        aria-label={text.viewAsName(name)}
      >
        {text.viewAs}
      </a>
      <a
        className="button quiet"
        href={address("admin", { who: person.principal }, "access")}
        aria-label={text.changeName(name)}
      >
        {text.change}
      </a>
      <Button kind="quiet" aria-label={text.eraseName(name)} onClick={() => onErase(person)}>
        {text.erase}
      </Button>
    </span>
  );
}

interface ErasureProps {
  person: Person;
  /** With what was deleted, if people confirmed it. */
  onClose: (erased: Erased | null) => void;
}

function ConfirmErasure({ person: { principal }, onClose }: ErasureProps) {
  const { client } = useApp();
  const text = useMessages("admin").people;
  const erased = useRef<Erased>(null);
  return (
    <Confirm
      title={text.eraseTitle(plain(partsOf(principal)[1]))}
      action={text.erase}
      isDangerous
      onConfirm={async () => {
        erased.current = await client.post("/api/people/erase", { principal });
      }}
      onClose={() => onClose(erased.current)}
    >
      <p>{text.isDeleted}</p>
      <ul className="bullets">
        {text.deleted.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <p>{text.isKept}</p>
      <ul className="bullets">
        {text.kept.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <p className="small">{text.eraseFirst}</p>
    </Confirm>
  );
}

/** What was deleted; it takes the focus, because the row that had it is gone. */
function WhatWasErased({ erased: { principal, conversations, gaps } }: { erased: Erased }) {
  const text = useMessages("admin").people;
  const announce = useAnnounce();
  const notice = useRef<HTMLDivElement>(null);
  const sentence = text.erased(plain(partsOf(principal)[1]), conversations, gaps);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when it appears
  useEffect(() => {
    notice.current?.focus();
    announce(sentence);
  }, []);
  return (
    <div ref={notice} tabIndex={-1}>
      <Notice>{sentence}</Notice>
    </div>
  );
}
