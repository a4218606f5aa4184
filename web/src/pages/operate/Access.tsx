/** The rules of access: who sees which label, and the changes since the access file. */

import { type FormEvent, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import type { components } from "../../api/schema";
import { useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { useAnnounce } from "../../parts/Announcer";
import { plain } from "../../parts/names";
import { Empty, ErrorBox, Loading } from "../../parts/states";
import { TableHead } from "../../parts/TableHead";
import { address } from "../../route";
import { MissingGroups } from "./Groups";
import { PrincipalField } from "./PrincipalField";
import { principals } from "./principals";

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
    return rules.error ? (
      <ErrorBox error={rules.error} onRetry={rules.reload} />
    ) : (
      <Loading what="the rules" />
    );
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
      {change && <Confirm change={change} onClose={() => setChange(null)} onDone={rules.reload} />}
    </>
  );
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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="card stack scroll" aria-labelledby="labels-title" tabIndex={0}>
      <h2 id="labels-title">Labels</h2>
      <table>
        <TableHead columns={["Label", "Allowed", "Denied, even if allowed"]} />
        <tbody>
          {rules.labels.map(({ label, allow, deny }) => (
            <tr key={label}>
              <th scope="row" dir="auto">
                {label}
              </th>
              <td>
                <Names names={allow} kind="good" />
              </td>
              <td>
                <Names names={deny} kind="bad" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="small">
        {["Operators", ...rules.sees_everything].join(", ")} see every document. Rights:{" "}
        {Object.entries(rules.rights)
          .map(([right, holders]) => `${right} for ${holders.join(", ") || "nobody"}`)
          .join("; ")}
        .
      </p>
    </section>
  );
}

function Add({ rules, onChange }: { rules: Rules; onChange: (change: Change) => void }) {
  const [label, setLabel] = useState(rules.labels[0]?.label ?? "");
  const [principal, setPrincipal] = useState("");
  const [effect, setEffect] = useState<"allow" | "deny">("allow");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChange({ label, principal: principal.trim(), effect });
  };
  return (
    <form className="card stack" aria-labelledby="add-title" onSubmit={submit}>
      <h2 id="add-title">Add a change</h2>
      <div className="fields">
        <label className="field">
          Effect
          <select value={effect} onChange={(event) => setEffect(event.target.value as "allow" | "deny")}>
            <option value="allow">Allow</option>
            <option value="deny">Deny</option>
          </select>
        </label>
        <PrincipalField
          label="Who"
          value={principal}
          onChange={setPrincipal}
          known={principals(rules)}
          pattern="(everyone|(user|group|tenant|role|key|scope):\S.*)"
        />
        <label className="field">
          Label
          <select value={label} onChange={(event) => setLabel(event.target.value)}>
            {rules.labels.map((each) => (
              <option key={each.label}>{each.label}</option>
            ))}
          </select>
        </label>
        <button type="submit">Continue …</button>
      </div>
    </form>
  );
}

function Changes({ rules, onChange }: { rules: Rules; onChange: (change: Change) => void }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
    <section className="card stack scroll" aria-labelledby="changes-title" tabIndex={0}>
      <h2 id="changes-title">Changes since the access file</h2>
      {rules.changes.length === 0 ? (
        <p className="small">None. The access file applies as it is.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Change</th>
              <th scope="col">By</th>
              <th scope="col">When</th>
              <th scope="col">
                <span className="visually-hidden">Remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rules.changes.map(({ label, principal, effect, by, at }) => (
              <tr key={`${label} ${principal}`}>
                <th scope="row">
                  <span className={`badge ${effect === "allow" ? "good" : "bad"}`}>{effect}</span>{" "}
                  <bdi>{principal}</bdi> at <bdi>{label}</bdi>
                </th>
                <td dir="auto">{by}</td>
                <td>{time(at)}</td>
                <td>
                  <button
                    type="button"
                    className="quiet"
                    aria-label={`Remove the change of ${principal} at ${label}`}
                    onClick={() => onChange({ label, principal, effect: null })}
                  >
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

interface ConfirmProps {
  change: Change;
  onClose: () => void;
  onDone: () => void;
}

function Confirm({ change, onClose, onDone }: ConfirmProps) {
  const { client } = useApp();
  const announce = useAnnounce();
  const opened = useRef(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const show = (dialog: HTMLDialogElement | null) => {
    if (dialog && !opened.current) dialog.showModal();
    opened.current = dialog !== null;
  };
  const send = async () => {
    setSending(true);
    setError(null);
    try {
      await client.post("/api/access", change);
      announce("The rule was changed");
      onDone();
      onClose();
    } catch (reason) {
      setError(ApiError.of(reason));
      setSending(false);
    }
  };
  return (
    <dialog ref={show} className="confirm" aria-labelledby="confirm-title" onClose={onClose}>
      <div className="stack">
        <h2 id="confirm-title">{question(change)}</h2>
        <p>{consequence(change)} It takes effect at once, and the audit log has your name.</p>
        {error && <ErrorBox error={error} />}
        <div className="row">
          <button
            type="button"
            className={change.effect === "deny" ? "danger" : "primary"}
            disabled={isSending}
            onClick={() => void send()}
          >
            {change.effect === null ? "Remove the change" : change.effect === "allow" ? "Allow" : "Deny"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </dialog>
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
  const [error, setError] = useState<ApiError | null>(null);
  const explain = async (as: string) => {
    setFound(null);
    setError(null);
    try {
      const query = { as: as.trim(), document: document.trim() };
      const explanation = await client.get("/api/access/explain", query);
      setFound(explanation);
      announce(`${explanation.visible ? "Visible" : "Hidden"}. ${explanation.rule}`);
    } catch (reason) {
      setError(ApiError.of(reason));
    }
  };
  return (
    <form
      className="card stack"
      aria-labelledby="explain-title"
      onSubmit={(event) => {
        event.preventDefault();
        void explain(viewer);
      }}
    >
      <h2 id="explain-title">Who sees a document, and why?</h2>
      <div className="fields">
        <PrincipalField label="Who" value={viewer} onChange={setViewer} known={principals(rules)} />
        <label className="field grow">
          Document (key or s3:// address)
          <input required dir="auto" value={document} onChange={(event) => setDocument(event.target.value)} />
        </label>
        <button type="submit">Explain</button>
      </div>
      {error && <ErrorBox error={error} />}
      {found && (
        <div className="box info">
          <p>
            <span className={`badge ${found.visible ? "good" : "bad"}`}>
              {found.visible ? "visible" : "hidden"}
            </span>{" "}
            <bdi>{found.rule}</bdi>
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
          <MissingGroups
            viewer={viewer.trim()}
            missing={found.depends_on ?? []}
            onAdd={(next) => {
              setViewer(next);
              void explain(next);
            }}
          />
          <p className="small">
            <a href={address("operate", { as: viewer.trim() }, "view-as")}>
              See all documents as <bdi>{plain(viewer.trim())}</bdi>
            </a>
          </p>
        </div>
      )}
    </form>
  );
}
