/** The Test Target box: where a question is asked, and how the search for it is made. Source: specification 002. */

import { LANGUAGES, MAX_TOP_K } from "../api/facts";
import type { Facets } from "../api/types";
import { useLoaded } from "../context";
import { useMessages } from "../messages";
import { RERANKER_CHOICES, rerankerOf, type Scalar, type Settings } from "../settings";
import { Checkbox, Select, TextField } from "./fields";
import { Scrolling } from "./shapes";

const ALL = "all";

interface Props {
  settings: Settings;
  onChange: (settings: Settings) => void;
  /** What the settings are for: an answer has a language, and results have a relevance. */
  kind?: "ask" | "search";
}

export function TestTarget({ settings, onChange, kind = "search" }: Props) {
  const text = useMessages("parts");
  const corpora = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  const versions = useLoaded("versions", (client) => client.get("/api/versions", {}));
  const set = (change: Partial<Settings>) => onChange({ ...settings, ...change });
  const chosen = Object.values(settings.facets).reduce((sum, values) => sum + values.length, 0);
  const known = corpora.data?.corpora ?? [];
  const collection = (name: string) => {
    const own = known.find((each) => each.name === name);
    const documents = typeof own?.documents === "number" ? ` (${own.documents})` : "";
    return [name, `${name}${documents}`, own?.searchable === false] as const;
  };
  return (
    <fieldset className="target">
      <legend>{text.testTarget}</legend>
      <Select
        label={text.collection}
        value={settings.corpus ?? ""}
        options={[
          ["", text.default],
          [ALL, text.allBalanced],
          ...withChosen(
            settings.corpus,
            known.map((each) => each.name),
          ).map(collection),
        ]}
        onChange={(corpus) => set({ corpus: corpus || null })}
      />
      <Select
        label={text.version}
        value={settings.version === null ? "" : JSON.stringify(settings.version)}
        options={[
          ["", text.any],
          ...(versions.data?.versions ?? []).map((each) => [JSON.stringify(each), String(each)] as const),
        ]}
        onChange={(version) => set({ version: version ? JSON.parse(version) : null })}
      />
      <Select
        label={text.reranker}
        value={settings.reranker ?? ""}
        options={[
          ["", text.default],
          ...RERANKER_CHOICES.map((name) => [name, name.charAt(0).toUpperCase() + name.slice(1)] as const),
        ]}
        onChange={(name) => set({ reranker: rerankerOf(name) })}
      />
      <NumberField
        label={text.topK}
        placeholder={text.default}
        max={MAX_TOP_K}
        value={settings.topK}
        onChange={(topK) => set({ topK })}
      />
      {kind === "ask" ? (
        <Select
          label={text.answerLanguage}
          value={settings.language ?? ""}
          options={[["", text.automatic], ...LANGUAGES.map((name) => [name, name] as const)]}
          onChange={(language) => set({ language: language || null })}
        />
      ) : (
        <NumberField
          label={text.minRelevance}
          placeholder={text.none}
          max={100}
          value={settings.minRelevance === null ? null : Math.round(settings.minRelevance * 100)}
          onChange={(percent) => set({ minRelevance: percent === null ? null : percent / 100 })}
        />
      )}
      <Checkbox className="check" checked={settings.infer} onChange={(infer) => set({ infer })}>
        {text.infer}
      </Checkbox>
      <details className="wide" open={chosen > 0}>
        <summary>
          {text.filters}
          {chosen > 0 && ` ${text.chosen(chosen)}`}
        </summary>
        <FilterChoices settings={settings} onChange={onChange} />
      </details>
    </fieldset>
  );
}

/** The values of attributes that documents should have. */
export function FilterChoices({ settings, onChange }: Pick<Props, "settings" | "onChange">) {
  const text = useMessages("parts");
  const facets = useLoaded("facets", (client) => client.get("/api/facets", {}));
  return (
    <>
      <FacetChoices
        facets={facets.data}
        chosen={settings.facets}
        onChange={(next) => onChange({ ...settings, facets: next })}
      />
      <Checkbox
        className="check"
        checked={settings.mode === "strict"}
        onChange={(isStrict) => onChange({ ...settings, mode: isStrict ? "strict" : "prefer" })}
      >
        {text.strict}
      </Checkbox>
    </>
  );
}

interface NumberProps {
  label: string;
  placeholder: string;
  max: number;
  /** From 1; null for none. */
  value: number | null;
  onChange: (value: number | null) => void;
}

function NumberField({ max, value, onChange, ...field }: NumberProps) {
  return (
    <TextField
      {...field}
      type="number"
      min={1}
      max={max}
      value={String(value ?? "")}
      onChange={(text) => {
        const next = Math.round(Number(text));
        onChange(next >= 1 ? Math.min(next, max) : null);
      }}
    />
  );
}

interface ChoicesProps {
  facets: Facets | null;
  chosen: Record<string, Scalar[]>;
  onChange: (chosen: Record<string, Scalar[]>) => void;
}

function FacetChoices({ facets, chosen, onChange }: ChoicesProps) {
  const text = useMessages("parts");
  if (facets === null) return <p className="small">{text.loadingAttributes}</p>;
  const choices = withChosenValues(facets, chosen);
  if (choices.length === 0) return <p className="small">{text.noAttributes}</p>;
  const toggle = (key: string, value: Scalar) => {
    const values = chosen[key] ?? [];
    const next = values.includes(value) ? values.filter((each) => each !== value) : [...values, value];
    const { [key]: _, ...others } = chosen;
    onChange(next.length > 0 ? { ...others, [key]: next } : others);
  };
  return (
    <Scrolling className="facets" label={text.attributes}>
      {choices.map((facet) => (
        <fieldset key={facet.key}>
          <legend>{facet.key}</legend>
          {facet.values.map(({ value, documents }) => (
            <label key={JSON.stringify(value)}>
              <input
                type="checkbox"
                checked={(chosen[facet.key] ?? []).includes(value)}
                onChange={() => toggle(facet.key, value)}
              />
              <span>{String(value)}</span>
              <span className="count">{documents ?? "–"}</span>
            </label>
          ))}
        </fieldset>
      ))}
    </Scrolling>
  );
}

interface Choices {
  key: string;
  /** The number of documents is not known of chosen values that are not listed. */
  values: { value: Scalar; documents: number | null }[];
}

/** The attributes, with chosen values that are not listed, so that they can be removed. */
export function withChosenValues(facets: Facets, chosen: Record<string, Scalar[]>): Choices[] {
  const missing = Object.keys(chosen).filter((key) => facets.facets.every((facet) => facet.key !== key));
  return [...facets.facets, ...missing.map((key) => ({ key, values: [] }))].map(({ key, values }) => {
    const others = (chosen[key] ?? []).filter((value) => values.every((each) => each.value !== value));
    return { key, values: [...others.map((value) => ({ value, documents: null })), ...values] };
  });
}

/** The names, with the chosen one even if it is not known, so that an address keeps its meaning. */
function withChosen(chosen: string | null, names: string[]): string[] {
  return chosen === null || chosen === ALL ? names : [...new Set([chosen, ...names])];
}
