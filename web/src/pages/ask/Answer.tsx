/** The text of an answer: each sentence with its verdict, each marker a way to its source. */

import { Fragment } from "react";
import type { AskResponse, Sentence } from "../../api/types";
import { place, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { cut } from "../../parts/spans";
import type { Asking } from "./conversation";
import { markers, verdict } from "./pieces";

const VERDICTS = {
  quoted: { label: "quoted", badge: "good", title: "These words are in the documents" },
  cited: { label: "cited", badge: "accent", title: "A source is named; its words were not compared" },
  unsupported: { label: "unsupported", badge: "warn", title: "No source supports this sentence" },
} as const;

interface Props {
  asking: Asking;
  lit: number | null;
  onLight: (sentence: number | null) => void;
  onOpen: (source: number) => void;
}

export function Answer({ asking, lit, onLight, onOpen }: Props) {
  const { response, text } = asking;
  const sentences: readonly Pick<Sentence, "start" | "end" | "citations">[] =
    response?.sentences ?? asking.cited;
  return (
    <p className="answer" dir="auto">
      {cut(text, sentences).map((piece, index) => {
        const sentence = piece.sentence === null ? undefined : sentences[piece.sentence];
        if (piece.sentence === null || !sentence) return <Fragment key={index}>{plain(piece.text)}</Fragment>;
        const known = response?.sentences[piece.sentence];
        const found = known && verdict(known);
        const shown = found && VERDICTS[found];
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
                  aria-label={`Open source ${part}`}
                  onClick={() => onOpen(part)}
                >
                  {part}
                </Button>
              ),
            )}
            {shown && (
              <span className={`verdict badge ${shown.badge}`} title={shown.title}>
                {shown.label}
                {known.support && `, ${known.support}`}
              </span>
            )}
          </span>
        );
      })}
    </p>
  );
}

/** The answer as text, with its sources: for people who paste it elsewhere. */
export function withSources(response: AskResponse): string {
  const cited = response.sources.filter((source) => source.cited);
  const lines = cited.map(
    (source) =>
      `[${source.number}] ${[source.source ?? "unnamed", place({ ...source, section: null })].filter(Boolean).join(", ")}`,
  );
  return [response.question, "", response.answer, "", ...lines].join("\n");
}
