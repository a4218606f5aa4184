/** The settings that are in force, where each comes from, and what somebody changed. */

import { useLoaded } from "../../context";
import { useMessages } from "../../messages";
import { TextField } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Badge, Card } from "../../parts/shapes";
import { Await, Empty } from "../../parts/states";
import { address, go, usePlace } from "../../route";
import { type Setting, sorted } from "./inForce";
import { Prose } from "./Prose";

export function SettingsTab() {
  const text = useMessages("admin").settings;
  const { params } = usePlace();
  const words = params.get("q") ?? "";
  const settings = useLoaded("settings", (client, signal) => client.get("/api/settings", {}, signal));
  if (settings.data === null) return <Await of={settings} what={text.loading} lines={8} />;
  const { changed, defaults } = sorted(settings.data.settings, words);
  const isSearching = words.trim() !== "";
  const found = changed.length + defaults.length;
  return (
    <>
      <p className="small">{text.hint}</p>
      <div className="fields filter">
        <TextField
          label={text.search}
          type="search"
          className="grow"
          value={words}
          onChange={(next) => go(address("admin", next ? { q: next } : {}, "settings"), { replace: true })}
          autoComplete="off"
          spellCheck={false}
        />
        <p className="small found" role="status">
          {text.found(found)}
        </p>
      </div>
      {found === 0 ? (
        <Empty title={text.noMatch} icon="settings">
          <p>{text.noMatchHint}</p>
        </Empty>
      ) : (
        <>
          {(changed.length > 0 || !isSearching) && (
            <Card title={text.changed}>
              {changed.length > 0 ? <Settings settings={changed} /> : <p>{text.noChanged}</p>}
            </Card>
          )}
          {defaults.length > 0 && (
            // With words, what they find is seen at once.
            <details key={String(isSearching)} className="card" open={isSearching}>
              <summary>{text.defaults(defaults.length)}</summary>
              <Settings settings={defaults} />
            </details>
          )}
        </>
      )}
    </>
  );
}

function Settings({ settings }: { settings: readonly Setting[] }) {
  const text = useMessages("admin").settings;
  const shown = (value: string | null) => (value ? plain(value) : text.none);
  return (
    <ul className="settings-list">
      {settings.map(({ name, value, default: otherwise, origin, description }) => (
        <li key={name}>
          <div className="setting">
            <code dir="ltr">{name}</code>
            {origin !== "default" && <Badge kind="accent">{text.origins[origin]}</Badge>}
          </div>
          <div className="setting-value">
            {value ? <code dir="auto">{plain(value)}</code> : <span className="small">{text.none}</span>}
            {origin !== "default" && otherwise !== value && description && (
              <p className="small" dir="auto">
                {text.defaultIs(shown(otherwise))}
              </p>
            )}
          </div>
          {description && (
            <p className="small">
              <Prose text={description} />
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}
