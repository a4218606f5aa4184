/** Without an answer: the documents that Search would show first. */

import { useState } from "react";
import { useLoaded } from "../../context";
import { plain } from "../../parts/names";
import { DocumentButton, OriginalDialog, type Shown } from "../../parts/Original";
import { Card, Where } from "../../parts/shapes";
import { Await } from "../../parts/states";
import { address } from "../../route";
import { type Settings, toParams, toRetrieve } from "../../settings";

const MOST = 3;

export function Closest({ settings, question }: { settings: Settings; question: string }) {
  const [open, setOpen] = useState<Shown | null>(null);
  const request = toRetrieve({ ...settings, question });
  const found = useLoaded(JSON.stringify(request), (client, signal) =>
    client.post("/api/retrieve", request, signal),
  );
  if (found.data === null) return <Await of={found} what="the closest documents" />;
  const sources = new Set<string | null>();
  const documents = found.data.results.filter(({ source }) => !sources.has(source) && sources.add(source));
  if (documents.length === 0) return <p className="small">A search finds nothing either.</p>;
  return (
    <Card title="The closest documents" level={3} className="closest">
      <ol className="stack">
        {documents.slice(0, MOST).map((result) => (
          <li key={result.source}>
            <DocumentButton passage={result} onOpen={setOpen} />
            <Where of={result} />
            <blockquote dir="auto">{plain(result.content)}</blockquote>
          </li>
        ))}
      </ol>
      <p>
        <a href={address("search", toParams({ ...settings, question }))}>Search for it</a>
      </p>
      {open && <OriginalDialog passage={open} onClose={() => setOpen(null)} />}
    </Card>
  );
}
