/** Where people ask: the question, and below it what is searched, as far as it is not the default. */

import { type Ref, useState } from "react";
import type { InferredFilter } from "../../api/types";
import { useLoaded } from "../../context";
import { percent } from "../../format";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { describe } from "../../parts/InferredChip";
import { Menu, MenuItem } from "../../parts/Menu";
import { plain } from "../../parts/names";
import { QuestionBox } from "../../parts/QuestionBox";
import { Button, Chip, Form, Hidden, IconButton } from "../../parts/shapes";
import { Await } from "../../parts/states";
import { FilterChoices, TestTarget } from "../../parts/TestTarget";
import type { Scalar, Settings } from "../../settings";

interface Props {
  text: string;
  onText: (text: string) => void;
  settings: Settings;
  onSettings: (settings: Settings) => void;
  /** Whether a question was asked with other settings than these. */
  isChanged: boolean;
  isRunning: boolean;
  isFollowUp: boolean;
  inferred: InferredFilter | null;
  onWithoutInference: () => void;
  onSubmit: () => void;
  onStop: () => void;
  box: Ref<HTMLTextAreaElement>;
}

export function Composer({ text, onText, settings, onSettings, box, ...props }: Props) {
  const messages = useMessages("ask");
  const { isChanged, isRunning, inferred } = props;
  const canAsk = text.trim() !== "" || isChanged;
  const set = (change: Partial<Settings>) => onSettings({ ...settings, ...change });
  const chosen = Object.entries(settings.facets).flatMap(([key, values]) =>
    values.map((value) => [key, value] as const),
  );
  const remove = (key: string, value: Scalar) => {
    const { [key]: values = [], ...others } = settings.facets;
    const rest = values.filter((each) => each !== value);
    set({ facets: rest.length > 0 ? { ...others, [key]: rest } : others });
  };
  return (
    <Form className="composer" onSubmit={props.onSubmit}>
      <QuestionBox
        ref={box}
        rows={1}
        placeholder={props.isFollowUp ? messages.followUp : messages.placeholder}
        value={text}
        onChange={onText}
      />
      <div className="composer-row">
        <div className="composer-choices">
          <CollectionMenu value={settings.corpus} onChange={(corpus) => set({ corpus })} />
          <VersionMenu value={settings.version} onChange={(version) => set({ version })} />
          {chosen.map(([key, value]) => {
            const filter = plain(`${key}: ${value}`);
            return (
              <Chip
                key={filter}
                removeLabel={messages.removeFilter(filter)}
                onRemove={() => remove(key, value)}
              >
                {filter}
              </Chip>
            );
          })}
          {inferred && settings.infer && (
            <span className="chip">
              <Menu
                className="inferred"
                label={messages.inferredFrom(describe(inferred.filter))}
                button={<bdi>{plain(describe(inferred.filter))}</bdi>}
              >
                <p className="inferred-why">{inferred.reason}</p>
                {inferred.trust !== null && (
                  <p className="inferred-why small">{messages.trust(percent(inferred.trust))}</p>
                )}
              </Menu>
              <WithoutInference onClick={props.onWithoutInference} />
            </span>
          )}
          <Menu
            className="choice"
            button={chosen.length > 0 ? messages.filtersChosen(chosen.length) : messages.filters}
          >
            <FilterChoices settings={settings} onChange={onSettings} />
          </Menu>
          <Menu className="choice test-target" button={<TestTargetName />}>
            <TestTarget settings={settings} onChange={onSettings} kind="ask" />
          </Menu>
        </div>
        {isRunning ? (
          <Button onClick={props.onStop}>{messages.stop}</Button>
        ) : (
          <Button type="submit" kind="primary" aria-disabled={!canAsk}>
            {text.trim() || !isChanged ? messages.ask : messages.askAgain}
          </Button>
        )}
      </div>
      {isChanged && !text.trim() && !isRunning && <p className="small">{messages.changed}</p>}
    </Form>
  );
}

function WithoutInference({ onClick }: { onClick: () => void }) {
  const text = useMessages("parts");
  return <IconButton icon="close" label={text.withoutInferred} onClick={onClick} />;
}

function TestTargetName() {
  const text = useMessages("parts");
  return (
    <>
      <Icon name="settings" size={15} /> <span>{text.testTarget}</span>
    </>
  );
}

const ALL = "all";

interface CollectionProps {
  value: string | null;
  onChange: (value: string | null) => void;
}

function CollectionMenu({ value, onChange }: CollectionProps) {
  const text = useMessages("ask");
  const parts = useMessages("parts");
  const name = (each: string | null) =>
    each === null ? text.allCollections : each === ALL ? parts.allBalanced : plain(each);
  return (
    <Menu className="choice" button={<Choice what={parts.collection} value={name(value)} />}>
      {(close) => (
        <Choices
          load={useCorpora}
          what={text.collections}
          chosen={value}
          fixed={[null, ALL]}
          name={name}
          onChoose={(next) => {
            onChange(next);
            close();
          }}
        />
      )}
    </Menu>
  );
}

interface VersionProps {
  value: Settings["version"];
  onChange: (value: Settings["version"]) => void;
}

function VersionMenu({ value, onChange }: VersionProps) {
  const text = useMessages("ask");
  const parts = useMessages("parts");
  const name = (each: Settings["version"]) => (each === null ? text.anyVersion : plain(String(each)));
  return (
    <Menu className="choice" button={<Choice what={parts.version} value={name(value)} />}>
      {(close) => (
        <Choices
          load={useVersions}
          what={text.versions}
          chosen={value}
          fixed={[null]}
          name={name}
          onChoose={(next) => {
            onChange(next);
            close();
          }}
        />
      )}
    </Menu>
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

function Choice({ what, value }: { what: string; value: string }) {
  return (
    <>
      <Hidden>{what}: </Hidden>
      <bdi>{value}</bdi> <Icon name="down" size={14} />
    </>
  );
}

interface ChoicesProps<T> {
  load: () => { found: Parameters<typeof Await>[0]["of"]; values: readonly T[] | undefined };
  what: string;
  chosen: T;
  /** What is there whether or not a document has it. */
  fixed: readonly T[];
  name: (value: T) => string;
  onChoose: (value: T) => void;
}

/** One of several values, which load when the menu opens. */
function Choices<T>({ load: useValues, what, chosen, fixed, name, onChoose }: ChoicesProps<T>) {
  const { found, values } = useValues();
  const [shown] = useState(chosen);
  return (
    <>
      {[...new Set([...fixed, shown, ...(values ?? [])])].map((value) => (
        <MenuItem key={JSON.stringify(value)} isChosen={value === chosen} onClick={() => onChoose(value)}>
          <bdi>{name(value)}</bdi>
        </MenuItem>
      ))}
      {!values && <Await of={found} what={what} />}
    </>
  );
}
