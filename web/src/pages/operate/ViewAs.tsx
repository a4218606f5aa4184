/** The documents as another user sees them, each with the rule that shows or hides it. */

import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, type Client } from "../../api/client";
import type { components } from "../../api/schema";
import type { DocumentSummary } from "../../api/types";
import { useApp } from "../../context";
import { count } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { plain } from "../../parts/names";
import { Button, Card, Form, Scrolling, VisibleBadge } from "../../parts/shapes";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address, go, usePlace } from "../../route";
import { PrincipalField, useRules } from "./Access";
import { MissingGroups, SeenGroups } from "./Groups";

type Explanation = components["schemas"]["Explanation"];

interface Row {
  document: DocumentSummary;
  explanation: Explanation;
}

const PAGE = 100;
const SHOWN = [
  ["all", "All"],
  ["visible", "Visible"],
  ["hidden", "Hidden"],
] as const;

export function ViewAsTab() {
  const { params } = usePlace();
  const viewer = params.get("as") ?? "";
  const [draft, setDraft] = useState(viewer);
  useEffect(() => setDraft(viewer), [viewer]);
  const rules = useRules();
  const submit = () => go(address("admin", { as: draft.trim() }, "view-as"));
  return (
    <>
      <Form className="fields" onSubmit={submit}>
        <PrincipalField value={draft} onChange={setDraft} rules={rules.data} />
        <Button type="submit" kind="primary">
          View
        </Button>
      </Form>
      {viewer ? (
        <Seen key={viewer} viewer={viewer} show={params.get("show") ?? "all"} />
      ) : (
        <Empty title="Whose view?">
          <p>
            Name a user, such as user:alice: they have the groups with which they were seen last. Name other
            groups as user:alice,group:people.
          </p>
        </Empty>
      )}
    </>
  );
}

function Seen({ viewer, show }: { viewer: string; show: string }) {
  const { client } = useApp();
  const announce = useAnnounce();
  const [rows, setRows] = useState<Row[]>([]);
  const [token, setToken] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<ApiError | null>(null);
  const abort = useRef<AbortController | null>(null);

  const more = useCallback(
    async (from: string | null) => {
      abort.current?.abort();
      const own = new AbortController();
      abort.current = own;
      setLoading(true);
      setError(null);
      try {
        const page = await nextPage(client, viewer, from, own.signal);
        setRows((before) => (from === null ? page.rows : [...before, ...page.rows]));
        setToken(page.token);
        const hidden = page.rows.filter(({ explanation }) => !explanation.visible).length;
        announce(`${count(page.rows.length, "document")}, ${hidden} of them hidden`);
      } catch (reason) {
        if (own.signal.aborted) return;
        setError(ApiError.of(reason));
      }
      setLoading(false);
    },
    [client, viewer, announce],
  );
  useEffect(() => {
    void more(null);
    return () => abort.current?.abort();
  }, [more]);

  const isFirst = rows.length === 0;
  if (isFirst && error) return <ErrorBox error={error} onRetry={() => void more(null)} />;
  if (isFirst && isLoading) return <Loading what="the documents" />;
  if (isFirst) return <Empty title="There are no documents yet" />;
  const visible = rows.filter(({ explanation }) => explanation.visible).length;
  const missing = [...new Set(rows.flatMap(({ explanation }) => explanation.depends_on ?? []))];
  const counts: Record<string, number> = { all: rows.length, visible, hidden: rows.length - visible };
  const shown = rows.filter(
    ({ explanation }) => show === "all" || explanation.visible === (show === "visible"),
  );
  return (
    <Card
      title={
        <>
          {plain(viewer)}
          {missing.length > 0 && ", without other groups,"} sees {visible.toLocaleString()} of{" "}
          {count(rows.length, "document")}
          {token && ", and there are more"}
        </>
      }
    >
      {rows[0] && <SeenGroups {...rows[0].explanation} />}
      <MissingGroups
        viewer={viewer}
        missing={missing}
        onAdd={(next) => go(address("admin", { as: next }, "view-as"))}
      />
      <fieldset className="plain row">
        <legend className="visually-hidden">Show</legend>
        {SHOWN.map(([name, title]) => (
          <label key={name} className="row">
            <input
              type="radio"
              name="show"
              checked={show === name}
              onChange={() =>
                go(address("admin", { as: viewer, ...(name === "all" ? {} : { show: name }) }, "view-as"), {
                  replace: true,
                })
              }
            />
            {title} ({(counts[name] ?? 0).toLocaleString()})
          </label>
        ))}
      </fieldset>
      {shown.length === 0 ? (
        <p className="small">None of these documents is {show}.</p>
      ) : (
        <Scrolling label="Documents">
          <Table
            rows={shown}
            keyOf={({ document }) => document.id}
            columns={[
              ["Document", ({ document }) => plain(document.key)],
              ["Seen", ({ explanation }) => <VisibleBadge visible={explanation.visible} />],
              ["Why", ({ explanation }) => <Why {...explanation} />],
            ]}
          />
        </Scrolling>
      )}
      {error && <ErrorBox error={error} onRetry={() => void more(token)} />}
      {token && !error && (
        <p>
          <Button disabled={isLoading} onClick={() => more(token)}>
            {isLoading ? "Loading …" : `Load ${PAGE} more`}
          </Button>
        </p>
      )}
    </Card>
  );
}

function Why({ rule, label, label_rule }: Explanation) {
  return (
    <>
      {rule}
      <div className="small">
        {label && (
          <>
            Label <bdi>{label}</bdi>.{" "}
          </>
        )}
        {label_rule}
      </div>
    </>
  );
}

async function nextPage(
  client: Client,
  viewer: string,
  from: string | null,
  signal: AbortSignal,
): Promise<{ rows: Row[]; token: string | null }> {
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
