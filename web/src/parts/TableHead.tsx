/** The head of a table. */
/** A title; `{ number }` is that of a column of numbers, and false leaves the column out. */
type Column = string | { number: string } | false;

export function TableHead({ columns }: { columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column, index) => {
          if (column === false) return null;
          const isText = typeof column === "string";
          return (
            <th key={index} scope="col" className={isText ? undefined : "number"}>
              {isText ? column : column.number}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
