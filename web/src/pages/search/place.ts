/** The address of the page: one or two settings, and the document that somebody misses. */
import { fromParams, type Settings, toParams } from "../../settings";

export interface SearchPlace {
  settings: Settings;
  /** The second settings, with the same question; null unless two are compared. */
  other: Settings | null;
  /** Key or URI of the missing document. */
  missing: string;
}

const OTHER = "b.";

export function fromAddress(params: URLSearchParams): SearchPlace {
  const settings = fromParams(params);
  const own = [...params].filter(([name]) => name.startsWith(OTHER));
  const other = fromParams(
    new URLSearchParams(own.map(([name, value]) => [name.slice(OTHER.length), value])),
  );
  return {
    settings,
    other: params.has("compare") ? { ...other, question: settings.question } : null,
    missing: params.get("missing") ?? "",
  };
}

export function toAddress({ settings, other, missing }: SearchPlace): URLSearchParams {
  const params = toParams(settings);
  if (other !== null) {
    params.set("compare", "on");
    for (const [name, value] of toParams({ ...other, question: "" })) params.set(`${OTHER}${name}`, value);
  }
  if (missing) params.set("missing", missing);
  return params;
}
