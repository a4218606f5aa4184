/** How many documents were indexed and failed in each hour of a day. */

import { count } from "../../format";
import { Card } from "../../parts/shapes";
import { Table } from "../../parts/Table";
import { axisEnd, type Hour } from "./service";

const HEIGHT = 100;
const GAP = 0.2;

export function Throughput({ hours }: { hours: Hour[] }) {
  const end = axisEnd(Math.max(0, ...hours.map(({ indexed, failed }) => indexed + failed)));
  const indexed = hours.reduce((sum, hour) => sum + hour.indexed, 0);
  const failed = hours.reduce((sum, hour) => sum + hour.failed, 0);
  const scale = (value: number) => (HEIGHT * value) / end;
  const summary = `In the last ${hours.length} hours ${count(indexed, "document")} ${
    indexed === 1 ? "was" : "were"
  } indexed, and ${failed.toLocaleString()} failed.`;
  const marks = hours.filter((_, place) => place % 6 === 0 || place === hours.length - 1);
  return (
    <Card
      title="Throughput"
      aside={
        <p className="legend small">
          <span className="swatch indexed" /> indexed <span className="swatch failed" /> failed
        </p>
      }
    >
      <p>
        {summary} <span className="small">A document counts each time that it is indexed or fails.</span>
      </p>
      {hours.length > 0 && (
        <>
          <div className="plot" aria-hidden="true">
            <div className="axis small">
              <span>{end.toLocaleString()}</span>
              <span>0</span>
            </div>
            <svg viewBox={`0 0 ${hours.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
              <path
                className="grid"
                d={`M0 0H${hours.length}M0 ${HEIGHT / 2}H${hours.length}M0 ${HEIGHT}H${hours.length}`}
              />
              {hours.map((hour, place) => (
                <g key={hour.hour}>
                  <rect
                    className="indexed"
                    x={place + GAP / 2}
                    width={1 - GAP}
                    y={HEIGHT - scale(hour.indexed)}
                    height={scale(hour.indexed)}
                  />
                  <rect
                    className="failed"
                    x={place + GAP / 2}
                    width={1 - GAP}
                    y={HEIGHT - scale(hour.indexed + hour.failed)}
                    height={scale(hour.failed)}
                  />
                </g>
              ))}
            </svg>
            <div className="hours small">
              {marks.map(({ hour }) => (
                <span key={hour}>{clock(hour)}</span>
              ))}
            </div>
          </div>
          <details>
            <summary>As a table</summary>
            <Table
              rows={hours}
              keyOf={({ hour }) => hour}
              columns={[
                ["Hour", ({ hour }) => clock(hour)],
                ["Indexed", (hour) => hour.indexed.toLocaleString(), "number"],
                ["Failed", (hour) => hour.failed.toLocaleString(), "number"],
              ]}
            />
          </details>
        </>
      )}
    </Card>
  );
}

function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString([], { hour: "numeric" });
}
