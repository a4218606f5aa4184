/** The address of the page: one or two settings, the document that somebody misses, and what is open. */
import { fromParams, type Settings, toParams } from "../../settings";

export interface SearchPlace {
  settings: Settings;
  /** The second settings, with the same question; null unless two are compared. */
  other: Settings | null;
  /** Key or URI of the missing document. */
  missing: string;
  /** The id of the result whose original is open. */
  open?: string;
}

const OTHER = "b.";

export function fromAddress(params: URLSearchParams): SearchPlace {
  const settings = fromParams(params);
  const own = [...params].filter(([name]) => name.startsWith(OTHER));
  const other = fromParams(
    new URLSearchParams(own.map(([name, value]) => [name.slice(OTHER.length), value])),
  );
  const open = params.get("open");
  return {
    settings,
    other: params.has("compare") ? { ...other, question: settings.question } : null,
    missing: params.get("missing") ?? "",
    ...(open ? { open } : {}),
  };
}

export function toAddress({ settings, other, missing, open }: SearchPlace): URLSearchParams {
  const params = toParams(settings);
  if (other !== null) {
    params.set("compare", "on");
    for (const [name, value] of toParams({ ...other, question: "" })) params.set(`${OTHER}${name}`, value);
  }
  if (missing) params.set("missing", missing);
  if (open) params.set("open", open);
  return params;
}
