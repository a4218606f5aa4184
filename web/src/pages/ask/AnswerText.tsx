/** What answers a question, as far as it is there: quotations under their documents, or a text with its markers. */

import type { Source } from "../../api/types";
import { Answer } from "./Answer";
import type { Asking } from "./conversation";
import { QuotedAnswer } from "./Quotations";
import { quotations } from "./quotations";

interface Props {
  asking: Asking;
  /** The sentence that is lit, and what lights another one. */
  lit?: number | null;
  onLight?: (sentence: number | null) => void;
  onOpen: (source: Source) => void;
}

export function AnswerText({ asking, lit = null, onLight = () => undefined, onOpen }: Props) {
  const { response, found, text } = asking;
  const quoted = response && quotations(response);
  if (quoted) return <QuotedAnswer response={response} quotations={quoted} onOpen={onOpen} />;
  if (text === "") return null;
  const sources = response?.sources ?? found?.sources ?? [];
  const open = (number: number) => {
    const source = sources.find((each) => each.number === number);
    if (source) onOpen(source);
  };
  return <Answer asking={asking} lit={lit} onLight={onLight} onOpen={open} />;
}
