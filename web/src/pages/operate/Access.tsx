/** The rules of access: who sees which label, and the changes since the access file. */

import { useState } from "react";
import type { components } from "../../api/schema";
import { useAction, useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { Select, TextField } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Badge, Button, Card, Hidden, VisibleBadge } from "../../parts/shapes";
import { Await, Empty, ErrorBox } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address } from "../../route";
import { MissingGroups, SeenGroups } from "./Groups";

type Rules = components["schemas"]["RulesView"];
type Change = components["schemas"]["RuleChange"];
type Explanation = components["schemas"]["Explanation"];

export function useRules() {
  return useLoaded("access", (client, signal) => client.get("/api/access", {}, signal));
}

export function AccessTab() {
  const rules = useRules();
  const [change, setChange] = useState<Change | null>(null);
  if (rules.data === null) {
    return <Await of={rules} what="the rules" />;
  }
  const { labels } = rules.data;
  if (labels.length === 0) {
    return (
      <Empty title="There are no labels">
        <p>This deployment has no access file with labels, so its rules cannot be changed here.</p>
      </Empty>
    );
  }
  return (
    <>
      <Labels rules={rules.data} />
      <Add rules={rules.data} onChange={setChange} />
      <Changes rules={rules.data} onChange={setChange} />
      <Explain rules={rules.data} />
      {change && <ConfirmChange change={change} onClose={() => setChange(null)} onDone={rules.reload} />}
    </>
  );
}

interface PrincipalProps {
  value: string;
  onChange: (value: string) => void;
  rules: Rules | null;
  pattern?: string;
}

/** A user or a group, with those that the rules name as suggestions. */
export function PrincipalField({ rules, ...field }: PrincipalProps) {
  return (
    <TextField
      {...field}
      label="Who (such as user:alice or group:people)"
      className="grow"
      required
      autoComplete="off"
      spellCheck={false}
      known={principals(rules)}
    />
  );
}

/** Whom the rules name. */
function principals(rules: Rules | null): string[] {
  if (rules === null) return [];
  const named = [
    ...rules.labels.flatMap(({ allow, deny }) => [...allow, ...deny]),
    ...rules.sees_everything,
    ...Object.values(rules.rights).flat(),
    ...rules.changes.map(({ principal }) => principal),
  ];
  return [...new Set(named)].filter((name) => name !== "everyone").sort();
}

function Names({ names, kind }: { names: string[]; kind: string }) {
  if (names.length === 0) return <span className="small">nobody</span>;
  return (
    <ul className="row names">
      {names.map((name) => (
        <li key={name} className={`badge ${kind}`} dir="auto">
          {name}
        </li>
      ))}
    </ul>
  );
}

function Labels({ rules }: { rules: Rules }) {
  return (
    <Card title="Labels" isScrolling>
      <Table
        isCards
        rows={rules.labels}
        keyOf={({ label }) => label}
        columns={[
          ["Label", ({ label }) => label],
          ["Allowed", ({ allow }) => <Names names={allow} kind="good" />],
          ["Denied, even if allowed", ({ deny }) => <Names names={deny} kind="bad" />],
        ]}
      />
      <p className="small">
        {["Operators", ...rules.sees_everything].join(", ")} see every document. Rights:{" "}
        {Object.entries(rules.rights)
          .map(([right, holders]) => `${right} for ${holders.join(", ") || "nobody"}`)
          .join("; ")}
        .
      </p>
    </Card>
  );
}

function Add({ rules, onChange }: { rules: Rules; onChange: (change: Change) => void }) {
  const [label, setLabel] = useState(rules.labels[0]?.label ?? "");
  const [principal, setPrincipal] = useState("");
  const [effect, setEffect] = useState<"allow" | "deny">("allow");
  return (
    <Card title="Add a change" onSubmit={() => onChange({ label, principal: principal.trim(), effect })}>
      <div className="fields">
        <Select
          label="Effect"
          value={effect}
          options={[
            ["allow", "Allow"],
            ["deny", "Deny"],
          ]}
          onChange={(next) => setEffect(next as "allow" | "deny")}
        />
        <PrincipalField
          value={principal}
          onChange={setPrincipal}
          rules={rules}
          pattern="(everyone|(user|group|tenant|role|key|scope):\S.*)"
        />
        <Select
          label="Label"
          value={label}
          options={rules.labels.map((each) => [each.label, each.label])}
          onChange={setLabel}
        />
        <Button type="submit">Continue …</Button>
      </div>
    </Card>
  );
}

function Changes({ rules, onChange }: { rules: Rules; onChange: (change: Change) => void }) {
  return (
    <Card title="Changes since the access file" isScrolling>
      {rules.changes.length === 0 ? (
        <p className="small">None. The access file applies as it is.</p>
      ) : (
        <Table
          isCards
          rows={rules.changes}
          keyOf={({ label, principal }) => `${label} ${principal}`}
          columns={[
            [
              "Change",
              ({ label, principal, effect }) => (
                <>
                  <Badge kind={effect === "allow" ? "good" : "bad"}>{effect}</Badge> <bdi>{principal}</bdi> at{" "}
                  <bdi>{label}</bdi>
                </>
              ),
            ],
            ["By", ({ by }) => by],
            ["When", ({ at }) => time(at)],
            [
              <Hidden key="remove">Remove</Hidden>,
              ({ label, principal }) => (
                <Button
                  kind="quiet"
                  aria-label={`Remove the change of ${principal} at ${label}`}
                  onClick={() => onChange({ label, principal, effect: null })}
                >
                  Remove
                </Button>
              ),
            ],
          ]}
        />
      )}
    </Card>
  );
}

interface ConfirmProps {
  change: Change;
  onClose: () => void;
  onDone: () => void;
}

function ConfirmChange({ change, onClose, onDone }: ConfirmProps) {
  const { client } = useApp();
  const announce = useAnnounce();
  const { effect } = change;
  return (
    <Confirm
      title={question(change)}
      action={effect === null ? "Remove the change" : effect === "allow" ? "Allow" : "Deny"}
      isDangerous={effect === "deny"}
      onConfirm={async () => {
        await client.post("/api/access", change);
        announce("The rule was changed");
        onDone();
      }}
      onClose={onClose}
    >
      <p>{consequence(change)} It takes effect at once, and the audit log has your name.</p>
    </Confirm>
  );
}

/** The change with names that a sentence can show. */
function readable({ label, principal, effect }: Change): Change {
  return { label: plain(label), principal: plain(principal), effect };
}

function question(change: Change): string {
  const { label, principal, effect } = readable(change);
  if (effect === null) return `Remove the change of ${principal} at ${label}?`;
  return `${effect === "allow" ? "Allow" : "Deny"} ${principal} the documents of ${label}?`;
}

function consequence(change: Change): string {
  const { label, principal, effect } = readable(change);
  if (effect === null) return "The access file applies again.";
  if (effect === "allow") return `${principal} will find and read every document with the label ${label}.`;
  return `${principal} will no longer see documents with the label ${label}, even if another rule allows it.`;
}

function Explain({ rules }: { rules: Rules }) {
  const { client } = useApp();
  const announce = useAnnounce();
  const [viewer, setViewer] = useState("");
  const [document, setDocument] = useState("");
  const [found, setFound] = useState<Explanation | null>(null);
  const { run, error } = useAction();
  const explain = (as: string) =>
    run(async () => {
      setFound(null);
      const query = { as: as.trim(), document: document.trim() };
      const explanation = await client.get("/api/access/explain", query);
      setFound(explanation);
      announce(`${explanation.visible ? "Visible" : "Hidden"}. ${explanation.rule}`);
    });
  return (
    <Card title="Who sees a document, and why?" onSubmit={() => explain(viewer)}>
      <div className="fields">
        <PrincipalField value={viewer} onChange={setViewer} rules={rules} />
        <TextField
          label="Document (key or s3:// address)"
          className="grow"
          required
          value={document}
          onChange={setDocument}
        />
        <Button type="submit">Explain</Button>
      </div>
      {error && <ErrorBox error={error} />}
      {found && (
        <div className="box info">
          <p>
            <VisibleBadge visible={found.visible} /> <bdi>{found.rule}</bdi>
          </p>
          <p className="small">
            {found.label ? (
              <>
                Label <bdi>{found.label}</bdi>.{" "}
              </>
            ) : (
              "No label. "
            )}
            {found.label_rule}
          </p>
          <SeenGroups {...found} />
          <MissingGroups
            viewer={viewer.trim()}
            missing={found.depends_on ?? []}
            onAdd={(next) => {
              setViewer(next);
              explain(next);
            }}
          />
          <p className="small">
            <a href={address("admin", { as: viewer.trim() }, "view-as")}>
              See all documents as <bdi>{plain(viewer.trim())}</bdi>
            </a>
          </p>
        </div>
      )}
    </Card>
  );
}
