import type { ReactNode } from "react";

/** Its title, what it shows of a row, and the class of its cells: "number" for figures. The first one names the row. */
export type Column<Row> = readonly [title: ReactNode, cell: (row: Row) => ReactNode, className?: string];

interface Props<Row> {
  /** False leaves a column out. */
  columns: readonly (Column<Row> | false)[];
  rows: readonly Row[];
  keyOf: (row: Row, index: number) => string | number;
  caption?: ReactNode;
  className?: string;
  /** Whether each row is a card where the page is narrow: for rows that are read one by one, not compared. */
  isCards?: boolean;
}

export function Table<Row>({ columns, rows, keyOf, caption, className = "", isCards }: Props<Row>) {
  const [first, ...others] = columns.filter((column) => column !== false);
  if (!first) return null;
  return (
    <table className={`${className} ${isCards ? "cards" : ""}`}>
      {caption && <caption>{caption}</caption>}
      <thead>
        <HeadRow columns={[first, ...others].map(([title, , className]) => [title, className])} />
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={keyOf(row, index)}>
            <th scope="row" dir="auto">
              {first[1](row)}
            </th>
            {others.map(([title, cell, kind], place) => (
              <td key={place} className={kind} dir={kind === "number" ? undefined : "auto"}>
                {isCards && (
                  <span className="cell-title" aria-hidden="true">
                    {title}
                  </span>
                )}
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** How the rows are sorted by a column; undefined if they are not. */
export type Sorted = "ascending" | "descending" | undefined;

interface HeadProps {
  columns: readonly (readonly [title: ReactNode, className?: string | undefined, sorted?: Sorted])[];
  /** Among all rows, if the table has only some. */
  index?: number;
}

export function HeadRow({ columns, index }: HeadProps) {
  return (
    <tr aria-rowindex={index}>
      {columns.map(([title, className, sorted], place) => (
        <th key={place} scope="col" className={className} aria-sort={sorted}>
          {title}
        </th>
      ))}
    </tr>
  );
}

/** Names with their values; those without a value are left out. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <table className="figures">
      <tbody>
        {rows
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td dir="auto">{value}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
