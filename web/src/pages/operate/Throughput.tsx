/** How many documents were indexed and failed in each hour of a day. */

import { useState } from "react";
import { clock, number } from "../../format";
import { useMessages } from "../../messages";
import { Card } from "../../parts/shapes";
import { Table } from "../../parts/Table";
import { axisEnd, type Hour } from "./service";

const HEIGHT = 100;
const GAP = 0.25;
const HOUR_MILLISECONDS = 3_600_000;
/** Hours between two that are written below. */
const STEP = 6;

export function Throughput({ hours }: { hours: Hour[] }) {
  const text = useMessages("admin").status;
  const [pointed, setPointed] = useState<number | null>(null);
  const end = axisEnd(Math.max(0, ...hours.map(({ indexed, failed }) => indexed + failed)));
  const indexed = hours.reduce((sum, hour) => sum + hour.indexed, 0);
  const failed = hours.reduce((sum, hour) => sum + hour.failed, 0);
  const scale = (value: number) => (HEIGHT * value) / end;
  const hour = pointed === null ? undefined : hours[pointed];
  if (indexed + failed === 0)
    return (
      <Card title={text.throughput}>
        <p className="small">{text.nothingIndexed}</p>
      </Card>
    );
  return (
    <Card
      title={text.throughput}
      aside={
        <p className="legend small">
          <span className="swatch accent" /> {text.indexed} <span className="dot bad" /> {text.failed}
        </p>
      }
    >
      <p className="small">
        {hour
          ? text.inHour(clock(hour.hour), clock(endOf(hour)), hour.indexed, hour.failed)
          : text.inAll(indexed, failed)}
      </p>
      <div className="plot" aria-hidden="true">
        <div className="axis small">
          <span>{number(end)}</span>
          {end % 2 === 0 && <span>{number(end / 2)}</span>}
          <span>0</span>
        </div>
        <svg
          viewBox={`0 0 ${hours.length} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onPointerMove={(event) => {
            const { left, width } = event.currentTarget.getBoundingClientRect();
            setPointed(Math.floor(((event.clientX - left) / width) * hours.length));
          }}
          onPointerLeave={() => setPointed(null)}
        >
          <path
            className="grid"
            d={`M0 0H${hours.length}M0 ${HEIGHT / 2}H${hours.length}M0 ${HEIGHT}H${hours.length}`}
          />
          {hour && pointed !== null && <rect className="pointed" x={pointed} width={1} height={HEIGHT} />}
          {hours.map((each, place) => (
            <g key={each.hour}>
              <rect
                className="accent"
                x={place + GAP / 2}
                width={1 - GAP}
                y={HEIGHT - scale(each.indexed)}
                height={scale(each.indexed)}
              />
              <rect
                className="bad"
                x={place + GAP / 2}
                width={1 - GAP}
                y={HEIGHT - scale(each.indexed + each.failed)}
                height={scale(each.failed)}
              />
            </g>
          ))}
        </svg>
        <div className="hours small">
          {hours
            .filter((_, place) => place % STEP === 0)
            .map((each) => (
              <span key={each.hour}>{clock(each.hour)}</span>
            ))}
        </div>
      </div>
      <details>
        <summary>{text.asTable}</summary>
        <Table
          rows={hours}
          keyOf={(each) => each.hour}
          columns={[
            [text.hour, (each) => clock(each.hour)],
            [text.indexed, (each) => number(each.indexed), "number"],
            [text.failed, (each) => number(each.failed), "number"],
          ]}
        />
      </details>
    </Card>
  );
}

function endOf({ hour }: Hour): Date {
  return new Date(Date.parse(hour) + HOUR_MILLISECONDS);
}
