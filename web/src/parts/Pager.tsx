import type { ReactNode } from "react";
import type { DocumentView } from "../api/types";
import { useMessages } from "../messages";
import { Button } from "./shapes";

interface Props {
  view: DocumentView;
  onPage: (page: number) => void;
  isLoading: boolean;
  children?: ReactNode;
}

/** Leads to the other pages of a document; nothing if there are none. */
export function Pager({ view, onPage, isLoading, children }: Props) {
  const text = useMessages("parts");
  const page = view.page ?? 1;
  const pages = view.pages ?? 1;
  if (pages < 2) return null;
  const turn = ({ valueAsNumber: next }: HTMLInputElement) => {
    if (next !== page && next >= 1 && next <= pages) onPage(next);
  };
  return (
    <nav className="row" aria-label={text.pagesOfDocument} aria-busy={isLoading}>
      <Button disabled={page <= 1} onClick={() => onPage(page - 1)}>
        {text.previous}
      </Button>
      <label>
        {text.pageLabel}{" "}
        <input
          key={page}
          type="number"
          className="page-number"
          min={1}
          max={pages}
          defaultValue={page}
          onKeyDown={(event) => event.key === "Enter" && turn(event.currentTarget)}
          onBlur={(event) => turn(event.currentTarget)}
        />{" "}
        {text.ofPages(pages)}
      </label>
      <Button disabled={page >= pages} onClick={() => onPage(page + 1)}>
        {text.next}
      </Button>
      {children}
    </nav>
  );
}
