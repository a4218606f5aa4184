/** The last step of a document's way: a search with its own words, which should find it. */

import type { DocumentDetail, DocumentView } from "../../api/types";
import { type Loaded, useLoaded } from "../../context";
import { milliseconds } from "../../format";
import { useMessages } from "../../messages";
import { Icon } from "../../parts/Icon";
import { documentName, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { address } from "../../route";
import { probe } from "./timeline";

export function Probe({ document, view }: { document: DocumentDetail; view: Loaded<DocumentView | null> }) {
  const text = useMessages("documents");
  if (view.isLoading)
    return (
      <p>
        <span className="spinner" aria-hidden="true" /> {text.probeReading}
      </p>
    );
  const name = documentName(document.uri).replace(/\.[^.]+$/, "");
  const query = probe(view.data?.title, view.data?.text ?? "") || name.replace(/[-_]+/g, " ");
  return <Search key={query} document={document} query={query} />;
}

function Search({ document, query }: { document: DocumentDetail; query: string }) {
  const text = useMessages("documents");
  const found = useLoaded(`probe ${document.uri} ${document.etag} ${query}`, async (client, signal) => {
    const started = performance.now();
    const body = { query, document: document.uri, infer_filter: false };
    const answer = await client.post("/api/explain", body, signal);
    return { answer, duration: performance.now() - started };
  });
  const again = (
    <a href={address("search", { q: query, doc: document.key })} title={query}>
      {text.probeSee}
    </a>
  );
  if (found.error)
    return (
      <div>
        <strong>{text.probeFailed}</strong>
        <p>{found.error.message}</p>
        <Button onClick={found.reload}>{text.tryAgain}</Button>
      </div>
    );
  if (!found.data)
    return (
      <p>
        <span className="spinner" aria-hidden="true" /> {text.probeSearching}
      </p>
    );
  const { answer, duration } = found.data;
  return (
    <div className={`probe ${answer.found ? "good" : "warn"}`}>
      <Icon name={answer.found ? "check" : "warning"} size={16} className="probe-icon" />
      <div>
        <strong>{answer.found ? text.probeFound(answer.rank ?? 0) : text.probeMissed}</strong>{" "}
        <span className="small">{milliseconds(duration)}</span>
        {!answer.found && <p dir="auto">{plain(answer.text)}</p>}
        <p className="small" dir="auto">
          “{plain(query)}” · {again}
        </p>
      </div>
    </div>
  );
}
