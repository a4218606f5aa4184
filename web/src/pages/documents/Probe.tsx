/** The last step of a document's way: a search with its own words, which should find it. */

import type { DocumentDetail, DocumentView } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { milliseconds } from "../../format";
import { documentName } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { address } from "../../route";
import { probe } from "./timeline";

export function Probe({ document, view }: { document: DocumentDetail; view: Loaded<DocumentView | null> }) {
  if (view.isLoading)
    return (
      <li className="accent">
        <span className="spinner" aria-hidden="true" /> Reading the first words for a search …
      </li>
    );
  const name = documentName(document.uri).replace(/\.[^.]+$/, "");
  const query = probe(view.data?.title, view.data?.text ?? "") || name.replace(/[-_]+/g, " ");
  return <Search key={query} document={document} query={query} />;
}

function Search({ document, query }: { document: DocumentDetail; query: string }) {
  const found = useLoaded(`probe ${document.uri} ${document.etag} ${query}`, async (client, signal) => {
    const started = performance.now();
    const body = { query, document: document.uri, infer_filter: false };
    const answer = await client.post("/api/explain", body, signal);
    return { answer, duration: performance.now() - started };
  });
  const again = (
    <a href={address("search", { q: query, doc: document.key })} title={query}>
      See this search
    </a>
  );
  if (found.error)
    return (
      <li className="warn">
        <strong>The search that should find it did not work</strong>
        <p>{found.error.message}</p>
        <Button onClick={found.reload}>Try again</Button>
      </li>
    );
  if (!found.data)
    return (
      <li className="accent">
        <span className="spinner" aria-hidden="true" /> Searching for its first words …
      </li>
    );
  const { answer, duration } = found.data;
  return (
    <li className={answer.found ? "good" : "warn"}>
      <strong>
        {answer.found
          ? `A search found this document at rank ${answer.rank}`
          : "A search with its own words did not find it"}
      </strong>{" "}
      <span className="small">{milliseconds(duration)}</span>
      {!answer.found && <p>{answer.text}</p>}
      <p className="small" dir="auto">
        “{query}” · {again}
      </p>
    </li>
  );
}
