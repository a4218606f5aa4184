/** One quiet row: what is searched, as far as it is not the default, and behind a button everything else. */

import { type ReactNode, useRef, useState } from "react";
import type { InferredFilter } from "../api/types";
import { type Loaded, useLoaded } from "../context";
import { percent } from "../format";
import { useMessages } from "../messages";
import { type Scalar, type Settings, withoutInferred } from "../settings";
import "../style/settings.css";
import { conditionsOf } from "./filters";
import { Icon } from "./Icon";
import { Menu, MenuItem } from "./Menu";
import { plain } from "./names";
import { Chip, Hidden, IconButton } from "./shapes";
import { Await, sentence } from "./states";
import { FilterChoices, TestTarget } from "./TestTarget";

interface Props {
  settings: Settings;
  onChange: (settings: Settings) => void;
  kind?: "ask" | "search";
  /** The name of the row, if a page has two. */
  legend?: string | undefined;
  inferred?: InferredFilter | null | undefined;
  /** What happens if people remove an inferred condition, unless it is a change like others. */
  onWithoutInferred?: ((key: string) => void) | undefined;
  /** What stands at the end of the row. */
  children?: ReactNode;
}

const ALL = "all";

export function SettingsRow({ settings, onChange, kind = "search", legend, inferred, ...props }: Props) {
  const text = useMessages("parts");
  const set = (change: Partial<Settings>) => onChange({ ...settings, ...change });
  const chosen = Object.entries(settings.facets).flatMap(([key, values]) =>
    values.map((value) => [key, value] as const),
  );
  const row = useRef<HTMLFieldSetElement>(null);
  // The token that is removed had the focus.
  const moveFocus = () => row.current?.querySelector<HTMLElement>(".choose-filters > button")?.focus();
  const remove = (key: string, value: Scalar) => {
    const { [key]: values = [], ...others } = settings.facets;
    const rest = values.filter((each) => each !== value);
    set({ facets: rest.length > 0 ? { ...others, [key]: rest } : others });
    moveFocus();
  };
  return (
    <fieldset className="settings-row" ref={row}>
      <legend className={legend ? "" : "visually-hidden"}>{legend ?? text.testTarget}</legend>
      <Pick
        title={text.collection}
        what={text.collections}
        load={useCorpora}
        fixed={[null, ALL]}
        value={settings.corpus}
        name={(each) => (each === null ? text.allCollections : each === ALL ? text.allBalanced : plain(each))}
        onChange={(corpus) => set({ corpus })}
      />
      <Pick
        title={text.version}
        what={text.versions}
        load={useVersions}
        fixed={[null]}
        value={settings.version}
        name={(each) => (each === null ? text.anyVersion : plain(String(each)))}
        onChange={(version) => set({ version })}
      />
      {chosen.map(([key, value]) => {
        const filter = plain(`${key}: ${value}`);
        return (
          <Chip key={filter} removeLabel={text.removeFilter(filter)} onRemove={() => remove(key, value)}>
            {filter}
          </Chip>
        );
      })}
      {inferred &&
        settings.infer &&
        conditionsOf(inferred.filter).map(([key, values]) => (
          <InferredToken
            key={key}
            condition={`${key}: ${values.join(text.or)}`}
            inferred={inferred}
            onRemove={() => {
              if (props.onWithoutInferred) props.onWithoutInferred(key);
              else onChange(withoutInferred(settings, conditionsOf(inferred.filter), key));
              moveFocus();
            }}
          />
        ))}
      <Menu
        kind="quiet"
        className="choose-filters"
        button={
          <>
            <Icon name="filter" size={15} />{" "}
            <span className="named">
              {chosen.length > 0 ? text.filtersChosen(chosen.length) : text.filters}
            </span>
          </>
        }
      >
        <FilterChoices settings={settings} onChange={onChange} />
      </Menu>
      <Menu
        kind="quiet"
        className="test-target"
        button={
          <>
            <Icon name="settings" size={15} /> <span className="named">{text.testTarget}</span>
          </>
        }
      >
        <TestTarget settings={settings} onChange={onChange} kind={kind} />
      </Menu>
      {props.children}
    </fieldset>
  );
}

interface InferredProps {
  /** One of its conditions. */
  condition: string;
  inferred: InferredFilter;
  onRemove: () => void;
}

/** A condition that the search inferred from the question; pressed, it says why. */
function InferredToken({ condition, inferred, onRemove }: InferredProps) {
  const text = useMessages("parts");
  const filter = plain(condition);
  return (
    <span className="chip">
      <Menu
        className="inferred"
        label={text.inferredFrom(filter)}
        button={
          <>
            <Icon name="sparkles" size={13} /> <bdi>{filter}</bdi>
          </>
        }
      >
        <p className="inferred-why">{sentence(plain(inferred.reason ?? ""))}</p>
        {inferred.trust !== null && (
          <p className="inferred-why small">{text.trust(percent(inferred.trust))}</p>
        )}
      </Menu>
      <IconButton icon="close" label={text.withoutInferred(filter)} onClick={onRemove} />
    </span>
  );
}

function useCorpora() {
  const found = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  return { found, values: found.data?.corpora.filter((each) => each.searchable).map((each) => each.name) };
}

function useVersions() {
  const found = useLoaded("versions", (client) => client.get("/api/versions", {}));
  return { found, values: found.data?.versions.filter((each) => typeof each !== "boolean") };
}

interface PickProps<T> {
  title: string;
  /** What loads when the menu opens. */
  what: string;
  load: () => { found: Loaded<unknown>; values: readonly T[] | undefined };
  /** What is there whether or not a document has it. */
  fixed: readonly T[];
  value: T;
  name: (value: T) => string;
  onChange: (value: T) => void;
}

/** One of several values. */
function Pick<T>({ title, value, name, onChange, ...others }: PickProps<T>) {
  return (
    <Menu
      kind="quiet"
      button={
        <>
          <Hidden>{title}: </Hidden>
          <bdi>{name(value)}</bdi> <Icon name="down" size={14} />
        </>
      }
    >
      {(close) => (
        <Values
          {...others}
          name={name}
          value={value}
          onChoose={(next) => {
            close();
            onChange(next);
          }}
        />
      )}
    </Menu>
  );
}

interface ValuesProps<T> extends Omit<PickProps<T>, "title" | "onChange"> {
  onChoose: (value: T) => void;
}

function Values<T>({ load: useValues, what, fixed, value: chosen, name, onChoose }: ValuesProps<T>) {
  const { found, values } = useValues();
  const [first] = useState(chosen);
  return (
    <>
      {[...new Set([...fixed, first, ...(values ?? [])])].map((value) => (
        <MenuItem key={JSON.stringify(value)} isChosen={value === chosen} onClick={() => onChoose(value)}>
          <bdi>{name(value)}</bdi>
        </MenuItem>
      ))}
      {!values && <Await of={found} what={what} />}
    </>
  );
}
