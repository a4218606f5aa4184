/** Names that people read, for what the interface calls by identifiers. */
import { messages } from "../messages";

/**
 * A text with its bidirectional controls made visible: they can show a file name or a sentence in another order than
 * it is written. Source: Unicode Standard Annex #9, explicit directional embeddings, overrides and isolates.
 */
export function plain(text: string): string {
  return text.replace(
    /[\u202A-\u202E\u2066-\u2069]/g,
    (control) => `[U+${control.charCodeAt(0).toString(16).toUpperCase()}]`,
  );
}

/** The last part of a key, to show. */
export function documentName(uri: string | null | undefined): string {
  if (!uri) return messages("parts").unnamed;
  const key = documentKey(uri);
  return key.split("/").pop() || key;
}

/** The key within the bucket, to show; other identifiers stay as they are. */
export function documentKey(uri: string): string {
  return plain(keyIn(uri));
}

/** The key within the bucket, as it is written. */
export function keyIn(uri: string): string {
  return uri.replace(/^s3:\/\/[^/]+\//, "");
}

export function place(position: {
  page?: number | null | undefined;
  last_page?: number | null | undefined;
  is_slide?: boolean | undefined;
  is_recognized?: boolean | undefined;
  sheet?: string | null | undefined;
  section?: string | null | undefined;
}): string {
  const text = messages("parts");
  const { page, last_page: last, is_slide: isSlide } = position;
  const pages =
    page && last
      ? (isSlide ? text.slidesTo : text.pagesTo)(page, last)
      : page
        ? (isSlide ? text.slide : text.page)(page)
        : null;
  const recognized = position.is_recognized ? text.recognized : null;
  const section = position.section?.replaceAll(" > ", " › ");
  return [pages, position.sheet, section, recognized].filter(Boolean).join(" › ");
}
