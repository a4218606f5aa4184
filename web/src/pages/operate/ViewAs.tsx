/** The documents as another user sees them, each with the rule that shows or hides it. */

import { useEffect, useState } from "react";
import type { Client } from "../../api/client";
import type { components } from "../../api/schema";
import type { DocumentSummary } from "../../api/types";
import { number } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Segments } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Button, Card, Form } from "../../parts/shapes";
import { Await, Empty, ErrorBox } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address, go, usePlace } from "../../route";
import { MissingGroups, Rule, SeenGroups, type Sight, SightBadge, sight } from "./Groups";
import { PrincipalField, usePrincipals, useRules } from "./PrincipalField";
import { type Page, usePages } from "./pages";

interface Row {
  document: DocumentSummary;
  explanation: components["schemas"]["Explanation"];
}

const PAGE = 100;
type Shown = "all" | Sight;
const SHOWN: readonly Shown[] = ["all", "visible", "hidden", "unknown"];

export function ViewAsTab() {
  const text = useMessages("admin").view;
  const { params } = usePlace();
  const viewer = params.get("as") ?? "";
  const [draft, setDraft] = useState(viewer);
  const known = usePrincipals(useRules().data);
  useEffect(() => setDraft(viewer), [viewer]);
  return (
    <>
      <Form className="fields" onSubmit={() => go(address("admin", { as: draft.trim() }, "view-as"))}>
        <PrincipalField value={draft} onChange={setDraft} known={known} />
        <Button type="submit" kind="primary">
          {text.view}
        </Button>
      </Form>
      {viewer ? (
        <Seen
          key={viewer}
          viewer={viewer}
          show={SHOWN.find((each) => each === params.get("show")) ?? "all"}
        />
      ) : (
        <Empty title={text.whose} icon="show">
          <p>{text.hint}</p>
        </Empty>
      )}
    </>
  );
}

function Seen({ viewer, show }: { viewer: string; show: Shown }) {
  const text = useMessages("admin").view;
  const announce = useAnnounce();
  const { rows, token, isLoading, error, more } = usePages<Row>(
    (client, from, signal) => nextPage(client, viewer, from, signal),
    (found) => announce(text.announce(found.length, count(found, "hidden"), count(found, "unknown"))),
  );
  const [first] = rows;
  if (!first && (error || isLoading))
    return <Await of={{ error, reload: more }} what={text.loading} lines={6} />;
  if (!first) return <Empty title={text.none} icon="documents" />;
  const unknown = count(rows, "unknown");
  const options = SHOWN.filter((name) => name !== "unknown" || unknown > 0);
  const shown = rows.filter(({ explanation }) => show === "all" || sight(explanation) === show);
  return (
    <Card
      title={
        unknown > 0
          ? text.notKnown(plain(viewer))
          : text.sees(plain(viewer), count(rows, "visible"), rows.length, token === null)
      }
    >
      <SeenGroups {...first.explanation} />
      <MissingGroups
        viewer={viewer}
        explanations={rows.map(({ explanation }) => explanation)}
        onAdd={(next) => go(address("admin", { as: next }, "view-as"))}
      />
      <div className="which">
        <Segments
          label={text.show}
          value={show}
          options={options.map((name) => [
            name,
            `${text.shown[name]} ${number(name === "all" ? rows.length : count(rows, name))}`,
          ])}
          onChange={(next) =>
            go(address("admin", { as: viewer, ...(next === "all" ? {} : { show: next }) }, "view-as"), {
              replace: true,
            })
          }
        />
      </div>
      {shown.length === 0 ? (
        <p className="small">{text.noneShown}</p>
      ) : (
        <Table
          isCards
          caption={<span className="visually-hidden">{text.documents}</span>}
          rows={shown}
          keyOf={({ document }) => document.id}
          columns={[
            [
              text.document,
              ({ document }) => (
                <a href={address("documents", {}, document.id)}>
                  <bdi>{plain(document.key)}</bdi>
                </a>
              ),
            ],
            [text.seen, ({ explanation }) => <SightBadge of={explanation} />],
            [text.why, ({ explanation }) => <Rule {...explanation} />],
          ]}
        />
      )}
      {error && <ErrorBox error={error} onRetry={more} />}
      {token && !error && (
        <p>
          <Button aria-disabled={isLoading} onClick={() => isLoading || more()}>
            {isLoading ? text.loadingMore : text.more(PAGE)}
          </Button>
        </p>
      )}
    </Card>
  );
}

function count(rows: readonly Row[], wanted: Sight): number {
  return rows.filter(({ explanation }) => sight(explanation) === wanted).length;
}

async function nextPage(
  client: Client,
  viewer: string,
  from: string | null,
  signal: AbortSignal,
): Promise<Page<Row>> {
  const { documents, next_token } = await client.get(
    "/api/documents",
    { limit: PAGE, next_token: from },
    signal,
  );
  if (documents.length === 0) return { rows: [], token: next_token };
  const request = { principal: viewer, uris: documents.map(({ uri }) => uri) };
  const explanations = await client.post("/api/access/explain", request, signal);
  const rows = documents.flatMap((document, place) => {
    const explanation = explanations[place];
    return explanation ? [{ document, explanation }] : [];
  });
  return { rows, token: next_token };
}
