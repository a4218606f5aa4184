/** The rules of access: who sees which label, the changes since the access file, and why somebody sees a document. */

import { useEffect, useRef, useState } from "react";
import type { components } from "../../api/schema";
import { useApp, useLoaded } from "../../context";
import { time } from "../../format";
import { type Messages, useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { Select, TextField } from "../../parts/fields";
import { plain } from "../../parts/names";
import { Badge, Button, Card, Chip, Hidden } from "../../parts/shapes";
import { Await, Empty, Notice } from "../../parts/states";
import { Table } from "../../parts/Table";
import { address, go, usePlace } from "../../route";
import { MissingGroups, Rule, SeenGroups, SightBadge } from "./Groups";
import { PrincipalField, type Rules, usePrincipals, useRules } from "./PrincipalField";

type Change = components["schemas"]["RuleChange"];
type Label = Rules["labels"][number];
type Text = Messages["admin"]["access"];

export function AccessTab() {
  const text = useMessages("admin").access;
  const { session, refreshMe } = useApp();
  const rules = useRules();
  const known = usePrincipals(rules.data);
  const [change, setChange] = useState<Change | null>(null);
  const labels = useRef<HTMLElement>(null);
  const isChanged = useRef(false);
  // What was pressed to change a rule may be gone with it.
  useEffect(() => {
    if (rules.data && isChanged.current && document.activeElement === document.body) labels.current?.focus();
    isChanged.current = false;
  }, [rules.data]);
  if (rules.data === null) return <Await of={rules} what={text.loading} lines={6} />;
  if (rules.data.labels.length === 0)
    return (
      <Empty title={text.noLabels} icon="lock">
        <p>{text.noLabelsHint}</p>
      </Empty>
    );
  return (
    <>
      {session.hasSignIn && session.settings.anonymous && <Notice kind="warning">{text.open}</Notice>}
      <Labels ref={labels} rules={rules.data} onChange={setChange} />
      <Add rules={rules.data} known={known} onChange={setChange} />
      <Changes rules={rules.data} onChange={setChange} />
      <Explain known={known} />
      {change && (
        <ConfirmChange
          change={change}
          onClose={() => setChange(null)}
          onDone={() => {
            isChanged.current = true;
            rules.reload();
            refreshMe(); // it may be about oneself
          }}
        />
      )}
    </>
  );
}

interface LabelsProps {
  rules: Rules;
  onChange: (change: Change) => void;
  ref: React.Ref<HTMLElement>;
}

function Labels({ rules, onChange, ref }: LabelsProps) {
  const text = useMessages("admin").access;
  const people = useMessages("admin").people;
  const changed = new Set(rules.changes.map(({ label, principal }) => JSON.stringify([label, principal])));
  const isChange = (label: string, principal: string) => changed.has(JSON.stringify([label, principal]));
  return (
    <Card title={text.labels} ref={ref}>
      <Table
        isCards
        rows={rules.labels}
        keyOf={({ label }) => label}
        columns={[
          [text.label, ({ label }) => plain(label)],
          [
            text.allowed,
            ({ label, allow }) => (
              <Names
                names={allow}
                removeLabel={(name) => text.revoke(name, plain(label))}
                onRemove={(principal) =>
                  onChange({ label, principal, effect: isChange(label, principal) ? null : "deny" })
                }
              />
            ),
          ],
          [
            text.denied,
            ({ label, deny }: Label) => (
              <Names
                names={deny}
                removeLabel={(name) => text.lift(name, plain(label))}
                canRemove={(principal) => isChange(label, principal)}
                onRemove={(principal) => onChange({ label, principal, effect: null })}
              />
            ),
          ],
        ]}
      />
      <p className="small" dir="auto">
        {text.seesAll(rules.sees_everything.map(plain))}
      </p>
      <h3>{text.rights}</h3>
      <dl className="rights">
        {Object.entries(rules.rights).map(([right, holders]) => (
          <div key={right}>
            <dt>{people.rightNames[right] ?? right}</dt>
            <dd>
              <Names names={holders} />
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

interface NamesProps {
  names: readonly string[];
  removeLabel?: (name: string) => string;
  canRemove?: (name: string) => boolean;
  onRemove?: (name: string) => void;
}

function Names({ names, removeLabel, canRemove = () => true, onRemove }: NamesProps) {
  const text = useMessages("admin").access;
  if (names.length === 0) return <span className="small">{text.nobody}</span>;
  return (
    <ul className="row names">
      {names.map((name) => {
        const shown = name === "everyone" ? text.everyone : plain(name);
        return (
          <li key={name}>
            {onRemove && canRemove(name) ? (
              <Chip removeLabel={removeLabel?.(shown) ?? ""} onRemove={() => onRemove(name)}>
                {shown}
              </Chip>
            ) : (
              <Badge>
                <bdi>{shown}</bdi>
              </Badge>
            )}
          </li>
        );
      })}
    </ul>
  );
}

interface AddProps {
  rules: Rules;
  known: readonly string[];
  onChange: (change: Change) => void;
}

function Add({ rules, known, onChange }: AddProps) {
  const text = useMessages("admin").access;
  const { params } = usePlace();
  const [label, setLabel] = useState(rules.labels[0]?.label ?? "");
  const [principal, setPrincipal] = useState(params.get("who") ?? "");
  const [effect, setEffect] = useState<"allow" | "deny">("allow");
  return (
    <Card title={text.add} onSubmit={() => onChange({ label, principal: principal.trim(), effect })}>
      <div className="fields">
        <Select
          label={text.effect}
          value={effect}
          options={[
            ["allow", text.effects.allow],
            ["deny", text.effects.deny],
          ]}
          onChange={(next) => setEffect(next as "allow" | "deny")}
        />
        <PrincipalField
          value={principal}
          onChange={setPrincipal}
          known={known}
          pattern="(everyone|(user|group|tenant|role|key|scope):\S.*)"
        />
        <Select
          label={text.label}
          value={label}
          options={rules.labels.map((each) => [each.label, plain(each.label)])}
          onChange={setLabel}
        />
        <Button type="submit">{text.continue}</Button>
      </div>
    </Card>
  );
}

function Changes({ rules, onChange }: { rules: Rules; onChange: (change: Change) => void }) {
  const text = useMessages("admin").access;
  const people = useMessages("admin").people;
  return (
    <Card title={text.changes}>
      {rules.changes.length === 0 ? (
        <p className="small">{text.noChanges}</p>
      ) : (
        <Table
          isCards
          rows={rules.changes}
          keyOf={({ label, principal }) => `${label} ${principal}`}
          columns={[
            [people.name, ({ principal }) => plain(principal)],
            [
              text.change,
              ({ label, effect }) => (
                <>
                  <Badge kind={effect === "allow" ? "good" : "bad"}>{effect && text.changeOf[effect]}</Badge>{" "}
                  <bdi>{plain(label)}</bdi>
                </>
              ),
            ],
            [text.by, ({ by }) => plain(by)],
            [text.when, ({ at }) => time(at)],
            [
              <Hidden key="remove">{text.remove}</Hidden>,
              ({ label, principal }) => (
                <Button
                  kind="quiet"
                  aria-label={text.removeOf(plain(principal), plain(label))}
                  onClick={() => onChange({ label, principal, effect: null })}
                >
                  {text.remove}
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
  const text = useMessages("admin").access;
  const { client } = useApp();
  const announce = useAnnounce();
  const { effect } = change;
  const { question, consequence } = said(change, text);
  return (
    <Confirm
      title={question}
      action={effect === null ? text.remove : text.effects[effect]}
      isDangerous={effect === "deny"}
      onConfirm={async () => {
        await client.post("/api/access", change);
        announce(text.done);
        onDone();
      }}
      onClose={onClose}
    >
      <p dir="auto">
        {consequence} {text.atOnce}
      </p>
    </Confirm>
  );
}

function said({ label, principal, effect }: Change, text: Text): { question: string; consequence: string } {
  const names = [plain(principal), plain(label)] as const;
  if (effect === null)
    return { question: text.questionRemove(...names), consequence: text.consequenceRemove };
  if (effect === "allow")
    return { question: text.questionAllow(...names), consequence: text.consequenceAllow(...names) };
  return { question: text.questionDeny(...names), consequence: text.consequenceDeny(...names) };
}

/** Why somebody sees a document or does not. The address has the question, so that others can look at it. */
function Explain({ known }: { known: readonly string[] }) {
  const text = useMessages("admin").access;
  const { params } = usePlace();
  const as = params.get("as") ?? "";
  const document = params.get("document") ?? "";
  const [viewer, setViewer] = useState(as);
  const [name, setName] = useState(document);
  useEffect(() => {
    setViewer(as);
    setName(document);
  }, [as, document]);
  const explain = (who: string) => go(address("admin", { as: who.trim(), document: name.trim() }, "access"));
  return (
    <Card title={text.explain} onSubmit={() => explain(viewer)}>
      <div className="fields">
        <PrincipalField value={viewer} onChange={setViewer} known={known} />
        <TextField label={text.document} className="grow" required value={name} onChange={setName} />
        <Button type="submit">{text.doExplain}</Button>
      </div>
      {as && document && (
        <Explanation key={`${as} ${document}`} as={as} document={document} onAdd={explain} />
      )}
    </Card>
  );
}

interface ExplanationProps {
  as: string;
  document: string;
  onAdd: (viewer: string) => void;
}

function Explanation({ as, document, onAdd }: ExplanationProps) {
  const text = useMessages("admin").access;
  const announce = useAnnounce();
  const loaded = useLoaded(`explain ${as} ${document}`, (client, signal) =>
    client.get("/api/access/explain", { as, document }, signal),
  );
  const { data } = loaded;
  useEffect(() => {
    if (data) announce(data.rule);
  }, [data, announce]);
  if (data === null) return <Await of={loaded} what={text.explaining} lines={2} />;
  return (
    <div className="box info">
      <p>
        <SightBadge of={data} />
      </p>
      <Rule {...data} />
      <SeenGroups {...data} />
      <MissingGroups viewer={as} explanations={[data]} onAdd={onAdd} />
      <p className="small">
        <a href={address("admin", { as }, "view-as")}>
          <bdi>{text.allAs(plain(as))}</bdi>
        </a>
      </p>
    </div>
  );
}
