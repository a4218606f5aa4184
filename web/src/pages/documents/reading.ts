/**
 * The structure of the text that was read from a document: headings, tables and lists, which readers write as in
 * Markdown. Everything else stays the text that it is, and nothing is ever HTML.
 */

export type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "list"; items: string[] }
  | { kind: "text"; text: string };

const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const ROW = /^\s*\|(.+)\|\s*$/;
const RULE = /^\s*\|(\s*:?-{2,}:?\s*\|)+\s*$/;
const ITEM = /^\s{0,3}[-*•]\s+(.+)$/;

export function blocksOf(text: string): Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  let plain: string[] = [];
  const end = () => {
    const joined = plain.join("\n").replace(/^\n+|\s+$/g, "");
    if (joined) blocks.push({ kind: "text", text: joined });
    plain = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const heading = HEADING.exec(line);
    if (heading) {
      end();
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (ROW.test(line) && RULE.test(lines[at + 1] ?? "")) {
      end();
      const head = cellsOf(line);
      const rows: string[][] = [];
      for (at += 2; at < lines.length && ROW.test(lines[at] ?? ""); at++) rows.push(cellsOf(lines[at] ?? ""));
      at--;
      blocks.push({ kind: "table", head, rows });
    } else if (ITEM.test(line)) {
      end();
      const items: string[] = [];
      for (; at < lines.length; at++) {
        const item = ITEM.exec(lines[at] ?? "");
        if (!item) break;
        items.push(item[1] ?? "");
      }
      at--;
      blocks.push({ kind: "list", items });
    } else if (line.trim() === "") end();
    else plain.push(line);
  }
  end();
  return blocks;
}

/** A bar with a backslash before it belongs to the text of a cell. */
function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) =>
      cell
        .trim()
        .replaceAll("\\|", "|")
        .replace(/<br\s*\/?>/g, "\n"),
    );
}
