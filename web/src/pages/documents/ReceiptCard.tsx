/** What the file has against what is in the index. What was not read comes first. */

import type { DocumentReceipt } from "../../api/types";
import { count, time } from "../../format";
import { Card } from "../../parts/shapes";
import { Table } from "../../parts/Table";

export function ReceiptCard({ receipt }: { receipt: DocumentReceipt }) {
  const more = receipt.parts_not_read - receipt.not_read.length;
  return (
    <Card title="What was read">
      <p className="small">
        The file was read a second time in another way and compared with {count(receipt.chunks, "chunk")} of
        the index, {time(receipt.compared_at)}.
      </p>
      {receipt.unreadable && <p>It could not be compared: {receipt.unreadable}</p>}
      {receipt.not_read.length > 0 && (
        <ul className="not-read">
          {receipt.not_read.map((part) => (
            <li key={part.part}>
              <strong dir="auto">{part.part}</strong> {part.why}
              {part.example && (
                <>
                  , such as <q dir="auto">{part.example}</q>
                </>
              )}
            </li>
          ))}
          {more > 0 && <li>and {count(more, "more part")}</li>}
        </ul>
      )}
      {receipt.counted.length > 0 && (
        <Table
          className="receipt"
          rows={receipt.counted}
          keyOf={(line) => line.what}
          columns={[
            ["In the file", (line) => line.what],
            ["Number", (line) => line.number.toLocaleString("en"), "number"],
            ["In the index", (line) => line.read.toLocaleString("en"), "number"],
            ["", (line) => <Share read={line.read} number={line.number} what={line.what} />],
            ["", (line) => line.why],
          ]}
        />
      )}
      {receipt.left_out.length > 0 && (
        <ul className="small">
          {receipt.left_out.map((left) => (
            <li key={left.what}>
              {left.number.toLocaleString("en")} {left.what} left out: {left.why}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Share({ read, number, what }: { read: number; number: number; what: string }) {
  return (
    <meter min={0} max={number || 1} value={number ? read : 1} aria-label={`Share of ${what} in the index`} />
  );
}
