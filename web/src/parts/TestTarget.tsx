/** The Test Target box: where a question is asked, and how the search for it is made. Source: specification 002. */
import type { ReactNode } from "react";
import { LANGUAGES, MAX_TOP_K } from "../api/facts";
import type { Facets } from "../api/types";
import { useLoaded } from "../context";
import { RERANKER_CHOICES, rerankerOf, type Scalar, type Settings } from "../settings";

const ALL = "all";

interface Props {
  settings: Settings;
  onChange: (settings: Settings) => void;
  /** Whether the answer's language can be chosen. */
  withLanguage?: boolean;
  legend?: string;
  children?: ReactNode;
}

export function TestTarget({
  settings,
  onChange,
  withLanguage = false,
  legend = "Test Target",
  children,
}: Props) {
  const corpora = useLoaded("corpora", (client) => client.get("/api/corpora", {}));
  const versions = useLoaded("versions", (client) => client.get("/api/versions", {}));
  const facets = useLoaded("facets", (client) => client.get("/api/facets", {}));
  const set = (change: Partial<Settings>) => onChange({ ...settings, ...change });
  const chosen = Object.values(settings.facets).reduce((sum, values) => sum + values.length, 0);
  return (
    <fieldset className="target">
      <legend>{legend}</legend>
      <label className="field">
        Collection
        <select
          value={settings.corpus ?? ""}
          onChange={(event) => set({ corpus: event.target.value || null })}
        >
          <option value="">Default</option>
          <option value={ALL}>All (balanced)</option>
          {withChosen(settings.corpus, corpora.data?.corpora.map((each) => each.name) ?? []).map((name) => {
            const known = corpora.data?.corpora.find((each) => each.name === name);
            return (
              <option key={name} value={name} disabled={known !== undefined && !known.searchable}>
                {name}
                {typeof known?.documents === "number" && ` (${known.documents})`}
              </option>
            );
          })}
        </select>
      </label>
      <label className="field">
        Version
        <select
          value={settings.version === null ? "" : JSON.stringify(settings.version)}
          onChange={(event) => set({ version: event.target.value ? JSON.parse(event.target.value) : null })}
        >
          <option value="">Any</option>
          {(versions.data?.versions ?? []).map((version) => (
            <option key={JSON.stringify(version)} value={JSON.stringify(version)}>
              {String(version)}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Reranker
        <select
          value={settings.reranker ?? ""}
          onChange={(event) => set({ reranker: rerankerOf(event.target.value) })}
        >
          <option value="">Default</option>
          {RERANKER_CHOICES.map((name) => (
            <option key={name} value={name}>
              {name.charAt(0).toUpperCase() + name.slice(1)}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Documents (top_k)
        <input
          type="number"
          min={1}
          max={MAX_TOP_K}
          placeholder="Default"
          value={settings.topK ?? ""}
          onChange={(event) => {
            const value = event.target.valueAsNumber;
            set({ topK: Number.isInteger(value) && value >= 1 ? Math.min(value, MAX_TOP_K) : null });
          }}
        />
      </label>
      {withLanguage && (
        <label className="field">
          Language of the answer
          <select
            value={settings.language ?? ""}
            onChange={(event) => set({ language: event.target.value || null })}
          >
            <option value="">Automatic</option>
            {LANGUAGES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <label className="check">
        <input
          type="checkbox"
          checked={settings.infer}
          onChange={(event) => set({ infer: event.target.checked })}
        />
        Infer filters from the question
      </label>
      {children}
      <details className="wide" open={chosen > 0}>
        <summary>Filters{chosen > 0 && ` (${chosen} chosen)`}</summary>
        <FacetChoices
          facets={facets.data}
          chosen={settings.facets}
          onChange={(next) => set({ facets: next })}
        />
        <label className="check">
          <input
            type="checkbox"
            checked={settings.mode === "strict"}
            onChange={(event) => set({ mode: event.target.checked ? "strict" : "prefer" })}
          />
          Strict: find nothing else. Otherwise, matches rank higher.
        </label>
      </details>
    </fieldset>
  );
}

interface ChoicesProps {
  facets: Facets | null;
  chosen: Record<string, Scalar[]>;
  onChange: (chosen: Record<string, Scalar[]>) => void;
}

function FacetChoices({ facets, chosen, onChange }: ChoicesProps) {
  if (facets === null) return <p className="small">Loading the attributes …</p>;
  const choices = withChosenValues(facets, chosen);
  if (choices.length === 0) return <p className="small">The documents have no attributes.</p>;
  const toggle = (key: string, value: Scalar) => {
    const values = chosen[key] ?? [];
    const next = values.includes(value) ? values.filter((each) => each !== value) : [...values, value];
    const { [key]: _, ...others } = chosen;
    onChange(next.length > 0 ? { ...others, [key]: next } : others);
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="facets" tabIndex={0} aria-label="Attributes of the documents">
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
    </section>
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
  return chosen === null || chosen === ALL || names.includes(chosen) ? names : [chosen, ...names];
}
