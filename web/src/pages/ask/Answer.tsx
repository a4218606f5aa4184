/** The text of an answer: each marker a way to its source, and a remark where something is not supported. */

import { Fragment } from "react";
import type { Sentence } from "../../api/types";
import { useMessages } from "../../messages";
import { plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { cut } from "../../parts/spans";
import type { Asking } from "./conversation";
import { markers } from "./pieces";

interface Props {
  asking: Asking;
  lit: number | null;
  onLight: (sentence: number | null) => void;
  onOpen: (source: number) => void;
}

export function Answer({ asking, lit, onLight, onOpen }: Props) {
  const messages = useMessages("ask");
  const { response, text } = asking;
  const sentences: readonly Pick<Sentence, "start" | "end" | "citations">[] =
    response?.sentences ?? asking.cited;
  return (
    <p className="answer" dir="auto">
      {cut(text, sentences).map((piece, index) => {
        const sentence = piece.sentence === null ? undefined : sentences[piece.sentence];
        if (piece.sentence === null || !sentence) return <Fragment key={index}>{plain(piece.text)}</Fragment>;
        const known = response?.sentences[piece.sentence];
        const number = piece.sentence;
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: the mouse only repeats what focus does
          <span
            key={index}
            className={`sentence ${number === lit ? "lit" : ""} ${known?.unsupported ? "unsupported" : ""}`}
            onMouseEnter={() => onLight(number)}
            onFocus={() => onLight(number)}
          >
            {markers(piece.text, sentence.citations).map((part, place) =>
              typeof part === "string" ? (
                <Fragment key={place}>{plain(part)}</Fragment>
              ) : (
                <Button
                  key={place}
                  className="marker"
                  aria-label={messages.openSource(part)}
                  onClick={() => onOpen(part)}
                >
                  {part}
                </Button>
              ),
            )}
            {known && <Exception sentence={known} />}
          </span>
        );
      })}
    </p>
  );
}

/** A remark about a sentence that is not simply supported. */
export function Exception({ sentence }: { sentence: Sentence }) {
  const text = useMessages("ask");
  const [label, why] = sentence.unsupported
    ? [text.unsupported, text.unsupportedWhy]
    : sentence.support === "partly"
      ? [text.partly, text.judgedSo]
      : sentence.support === "not supported"
        ? [text.notSupported, text.judgedSo]
        : [];
  if (!label) return null;
  return (
    <span className="exception badge warn" title={why}>
      {label}
    </span>
  );
}
