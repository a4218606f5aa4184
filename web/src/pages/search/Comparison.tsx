/** Two rankings side by side, with lines that show what moved. */

import { useState } from "react";
import type { RetrievedResult, RetrieveResponse } from "../../api/types";
import { figure } from "../../format";
import { useMessages } from "../../messages";
import { place } from "../../parts/names";
import { DocumentButton, type Shown } from "../../parts/Original";
import { Badge, Hidden } from "../../parts/shapes";
import { Table } from "../../parts/Table";
import { type Change, changes, described, resultKey, summary } from "./changes";

interface Props {
  before: RetrieveResponse;
  after: RetrieveResponse;
  onOpen: (passage: Shown) => void;
}

export function Comparison({ before, after, onOpen }: Props) {
  const text = useMessages("search");
  const parts = useMessages("parts");
  const [lit, setLit] = useState<string | null>(null);
  const all = changes(before.results, after.results);
  const rows = Math.max(before.results.length, after.results.length);
  const list = (title: string, results: RetrievedResult[], kinds: readonly string[]) => (
    <Ranked
      title={title}
      results={results}
      all={all}
      kinds={kinds}
      lit={lit}
      onLight={setLit}
      onOpen={onOpen}
    />
  );
  return (
    <section className="stack" aria-label={text.comparison}>
      <h2 className="summary">{summary(all)}</h2>
      {rows > 0 && (
        <div className="sides">
          {list(parts.settingsOf("A"), before.results, ["left"])}
          <Lines all={all} rows={rows} lit={lit} />
          {list(parts.settingsOf("B"), after.results, ["up", "down", "entered", "same"])}
        </div>
      )}
      {rows > 0 && <ChangesTable all={all} onOpen={onOpen} />}
    </section>
  );
}

interface RankedProps {
  title: string;
  results: RetrievedResult[];
  all: Change[];
  /** The changes that this list names; the other list names the rest. */
  kinds: readonly string[];
  lit: string | null;
  onLight: (key: string | null) => void;
  onOpen: (passage: Shown) => void;
}

function Ranked({ title, results, all, kinds, lit, onLight, onOpen }: RankedProps) {
  const text = useMessages("search");
  return (
    <section aria-label={title}>
      <h3 className="side-name">
        {title}
        {results.length === 0 && <span className="small"> {text.foundNothing}</span>}
      </h3>
      <ol className="ranked">
        {results.map((result, index) => {
          const key = resultKey(result);
          const change = all.find((each) => each.key === key);
          return (
            <li
              key={`${key} ${index}`}
              className={key === lit ? "lit" : ""}
              onMouseEnter={() => onLight(key)}
              onMouseLeave={() => onLight(null)}
              onFocus={() => onLight(key)}
              onBlur={() => onLight(null)}
            >
              <Badge kind="accent">{index + 1}</Badge>
              <div className="what">
                <DocumentButton passage={result} onOpen={onOpen} />
                <p className="small" dir="auto">
                  {[place(result), text.scored(figure(result.score))].filter(Boolean).join(" · ")}
                </p>
              </div>
              {change && kinds.includes(change.kind) && <ChangeBadge change={change} />}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

const SIGNS = { up: "▲", down: "▼", same: "=", entered: "+", left: "−" } as const;
const BADGES = { up: "good", down: "warn", same: "", entered: "accent", left: "bad" } as const;

function ChangeBadge({ change }: { change: Change }) {
  return (
    <Badge kind={BADGES[change.kind]}>
      <span aria-hidden="true">{SIGNS[change.kind]} </span>
      <span className={change.kind === "same" ? "visually-hidden" : ""}>{described(change)}</span>
    </Badge>
  );
}

/** Lines between rows of equal height: from a rank in A to the rank in B. */
function Lines({ all, rows, lit }: { all: Change[]; rows: number; lit: string | null }) {
  const y = (rank: number) => rank - 0.5;
  return (
    <svg
      className="lines"
      viewBox={`0 0 1 ${rows}`}
      preserveAspectRatio="none"
      style={{ height: `calc(${rows} * var(--row))` }}
      aria-hidden="true"
    >
      {all.map(({ key, from, to, kind }) => {
        const start = from ?? to ?? 1;
        const end = to ?? from ?? 1;
        const d =
          kind === "left"
            ? `M 0 ${y(start)} H 0.3`
            : kind === "entered"
              ? `M 0.7 ${y(end)} H 1`
              : `M 0 ${y(start)} C 0.5 ${y(start)} 0.5 ${y(end)} 1 ${y(end)}`;
        return <path key={key} className={`${kind} ${key === lit ? "lit" : ""}`} d={d} />;
      })}
    </svg>
  );
}

/** The same for narrow screens, and for people who prefer a table. */
function ChangesTable({ all, onOpen }: { all: Change[]; onOpen: (passage: Shown) => void }) {
  const text = useMessages("search");
  return (
    <Table
      className="changes"
      caption={<Hidden>{text.changes}</Hidden>}
      rows={all}
      keyOf={({ key }) => key}
      columns={[
        [
          text.document,
          ({ after, before }) => {
            const result = after ?? before;
            return result && <DocumentButton passage={result} onOpen={onOpen} />;
          },
        ],
        ["A", ({ from }) => from ?? "–", "number"],
        ["B", ({ to }) => to ?? "–", "number"],
        [text.change, (change) => <ChangeBadge change={change} />],
      ]}
    />
  );
}
