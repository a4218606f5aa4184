/** What a view of a document marks, in words. A mark is what people can see: a box on the page, or marked text. */
import type { DocumentView } from "../api/types";
import { messages } from "../messages";

type Mark = DocumentView["marks"][number];
type Box = Mark["boxes"][number];

/** The marks of the page that is shown, or of a text without pages. */
export function marksHere(view: DocumentView): Mark[] {
  return view.marks.filter((mark) => view.page === null || mark.page === view.page);
}

/** The boxes of a mark that are on the picture. Offsets are shares of the page, 0 to 1. */
export function visibleBoxes(mark: Mark): Box[] {
  return mark.boxes.filter(
    ({ left, top, width, height }) =>
      width > 0 && height > 0 && left < 1 && top < 1 && left + width > 0 && top + height > 0,
  );
}

function isVisible(view: DocumentView, mark: Mark): boolean {
  return view.image ? visibleBoxes(mark).length > 0 : mark.marked && mark.end > mark.start;
}

interface Found {
  text: string;
  /** Whether every quotation is marked on what is shown. */
  isComplete: boolean;
}

/** Say which of the quotations are marked, and where; null if none was asked for. */
export function found(view: DocumentView, asked: number): Found | null {
  if (asked === 0) return null;
  const text = messages("parts");
  const here = new Set(
    marksHere(view)
      .filter((mark) => isVisible(view, mark))
      .map((mark) => mark.index),
  );
  if (here.size >= asked) return { text: text.marked, isComplete: true };
  if (here.size > 0) return { text: text.markedPartly(here.size, asked), isComplete: false };
  const elsewhere = view.mark_pages.filter((page) => page !== view.page);
  if (elsewhere.length > 0) return { text: text.markedElsewhere(elsewhere), isComplete: false };
  return { text: text.markedNowhere, isComplete: false };
}
