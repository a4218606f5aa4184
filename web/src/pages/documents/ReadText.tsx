/** The text that was read, with its headings, tables and lists. */
import { memo } from "react";
import { plain } from "../../parts/names";
import { type Block, blocksOf } from "./reading";

export const ReadText = memo(function ReadText({ text }: { text: string }) {
  return (
    <div className="read-text">
      {blocksOf(plain(text)).map((block, index) => (
        <Shown key={index} block={block} />
      ))}
    </div>
  );
});

function Shown({ block }: { block: Block }) {
  switch (block.kind) {
    case "heading": {
      // Below the headings of the page, which screen readers list.
      const Heading = `h${Math.min(block.level + 2, 6) as 3 | 4 | 5 | 6}` as const;
      return (
        <Heading className={`read-heading level-${block.level}`} dir="auto">
          {block.text}
        </Heading>
      );
    }
    case "list":
      return (
        <ul>
          {block.items.map((item, index) => (
            <li key={index} dir="auto">
              {item}
            </li>
          ))}
        </ul>
      );
    case "table":
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard
        <div className="scroll" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {block.head.map((cell, index) => (
                  <th key={index} scope="col" dir="auto">
                    {cell}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, place) => (
                    <td key={place} dir="auto">
                      {cell}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    default:
      return <p dir="auto">{block.text}</p>;
  }
}
