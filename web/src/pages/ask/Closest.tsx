/** Without an answer: the documents that Search would show first. */
import { useState } from "react";
import { useLoaded } from "../../context";
import { documentName, place, plain } from "../../parts/names";
import { OriginalDialog, type Shown } from "../../parts/Original";
import { ErrorBox, Loading } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toParams, toRetrieve } from "../../settings";

const MOST = 3;

export function Closest({ settings, question }: { settings: Settings; question: string }) {
  const [open, setOpen] = useState<Shown | null>(null);
  const request = toRetrieve({ ...settings, question });
  const { data, error, reload } = useLoaded(JSON.stringify(request), (client, signal) =>
    client.post("/api/retrieve", request, signal),
  );
  if (error) return <ErrorBox error={error} onRetry={reload} />;
  if (!data) return <Loading what="the closest documents" />;
  const sources = new Set<string | null>();
  const documents = data.results.filter(({ source }) => !sources.has(source) && sources.add(source));
  if (documents.length === 0) return <p className="small">A search finds nothing either.</p>;
  return (
    <section className="card stack closest" aria-labelledby="closest-title">
      <h3 id="closest-title">The closest documents</h3>
      <ol className="stack">
        {documents.slice(0, MOST).map((result) => (
          <li key={result.source}>
            <button type="button" className="quiet name" onClick={() => setOpen(result)}>
              <bdi>{documentName(result.source)}</bdi>
            </button>
            {place(result) && (
              <span className="small" dir="auto">
                {" "}
                {place(result)}
              </span>
            )}
            <blockquote dir="auto">{plain(result.content)}</blockquote>
          </li>
        ))}
      </ol>
      <p>
        <a href={address("search", toParams({ ...settings, question }))}>Search for it</a>
      </p>
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </section>
  );
}
