"""Verify the citations and quotations of an answer while it arrives."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from ragstack_common.answers.answer import CitationEvent, CitedText, Quotation, Sentence, TokenEvent
from ragstack_common.answers.models.protocol import NumberedPassage
from ragstack_common.answers.phrases import NO_ANSWER, has_closest_passages, is_no_answer
from ragstack_common.answers.verify.claims import makes_claim
from ragstack_common.answers.verify.markers import MarkerReader, marker_offsets, numbers_in, shown, without_markers
from ragstack_common.answers.verify.marks import AMBIGUOUS_MARKS, OUTER_MARKS, Quoted, quotations_in, unclosed_in
from ragstack_common.answers.verify.quotations import PassageIndex, is_checked
from ragstack_common.answers.verify.sentences import SentenceReader, Span

_LONG_NUMBER: Final = re.compile(r"\d[\d.,]*\d")
"""Numbers of at least two digits; shorter ones are often those of headings and list items."""

_FENCES: Final = re.compile(r"\A[^\n]*\n|\n?[^\n]*\Z")


class AnswerVerifier:
    """Checks an answer that is fed piece by piece against the passages that the answerer received.

    Attributes:
        answer: The verified text so far; markers have the form [1].
        cited: Numbers of the sources that finished sentences cite or quote.
        quoted: The characters that are quoted from each of them.
    """

    def __init__(self, passages: Sequence[NumberedPassage]) -> None:
        self.answer = ""
        self.quoted: dict[int, list[CitedText]] = defaultdict(list)
        self.cited: set[int] = set()
        self._markers = MarkerReader({passage.number for passage in passages})
        self._reader = SentenceReader()
        self._passages_index = PassageIndex(passages)
        self._known_numbers = frozenset(
            number for passage in passages for number in _LONG_NUMBER.findall(passage.chunk.content)
        )
        self._sentences: list[tuple[Sentence, bool]] = []
        self._unclosed = ""
        self._length = 0
        self._marker_at: list[int] = []
        self._longer_by = [0]

    @property
    def removed(self) -> int:
        """How many numbers that name no passage were removed."""
        return self._markers.removed

    @property
    def no_answer(self) -> bool:
        """Whether the answerer said that the passages contain no answer, or may contain none."""
        return self._markers.no_answer or is_no_answer(self.answer) or self.closest_passages

    @property
    def closest_passages(self) -> bool:
        """Whether the answerer only quotes what is closest to the question."""
        return has_closest_passages(self.answer)

    def feed(self, text: str) -> list[TokenEvent | CitationEvent]:
        """Read the next piece of the answer; return what is verified by now."""
        return self._events(self._markers.feed(text), last=False)

    def finish(self) -> list[TokenEvent | CitationEvent]:
        """Verify the end of the answer."""
        rest = self._markers.feed("", last=True)
        if self._markers.no_answer and not (self.answer + rest).strip():
            rest = NO_ANSWER
        return self._events(rest, last=True)

    @property
    def sentences(self) -> list[Sentence]:
        """The finished sentences. Whether one is supported may depend on the one after it."""
        found: list[Sentence] = []
        next_is_supported = False
        for position in reversed(range(len(self._sentences))):
            sentence, is_heading = self._sentences[position]
            is_bare = not (sentence.citations or sentence.quotations)
            claims = self._claims(sentence.text, is_heading=is_heading)
            introduces = is_bare and not claims and sentence.text.endswith((":", "：")) and next_is_supported  # noqa: RUF001 - full-width
            refuses = is_bare and position == 0 and self.no_answer
            claims_nothing = is_heading and not claims and all(quotation.source for quotation in sentence.quotations)
            unsupported = sentence.unsupported and not (claims_nothing or introduces or refuses)
            if not is_heading:
                next_is_supported = not unsupported
            found.append(sentence.model_copy(update={"unsupported": unsupported}))
        return found[::-1]

    def _claims(self, text: str, *, is_heading: bool) -> bool:
        """Whether a heading or an introduction makes a claim that no passage has in the same words."""
        if any(number not in self._known_numbers for number in _LONG_NUMBER.findall(text)):
            return True
        return makes_claim(text, is_heading=is_heading) and not self._passages_index.mentions(text.strip("#*_:： "))  # noqa: RUF001 - full-width

    def _events(self, text: str, *, last: bool) -> list[TokenEvent | CitationEvent]:
        events: list[TokenEvent | CitationEvent] = []
        visible = shown(text)
        if visible:
            events.append(TokenEvent(text=visible))
            self.answer += visible
            for offset, longer_by in marker_offsets(text):
                self._marker_at.append(self._length + offset)
                self._longer_by.append(self._longer_by[-1] + longer_by)
            self._length += len(text)
        for span in self._reader.feed(text, last=last):
            sentence = self._sentence(span)
            self._sentences.append((sentence, span.kind == "heading"))
            self.cited.update(sentence.citations)
            if sentence.citations:
                events.append(
                    CitationEvent(
                        sentence=len(self._sentences) - 1,
                        start=sentence.start,
                        end=sentence.end,
                        citations=sentence.citations,
                    )
                )
        return events

    def _offset(self, offset: int) -> int:
        """Convert an offset in the text with private markers to one in the answer."""
        return offset + self._longer_by[bisect_left(self._marker_at, offset)]

    def _sentence(self, span: Span) -> Sentence:
        citations = numbers_in(span.text)
        text = without_markers(span.text).strip()
        quotations: list[Quotation] = []
        for quoted, required in self._quoted(span, text, citations):
            found = self._passages_index.find(quoted, citations)
            if found is None and not required:
                continue
            quotations.append(Quotation(text=quoted, source=found[0] if found else None))
            if found:
                number, characters = found
                self.quoted[number] += [one for one in characters if one not in self.quoted[number]]
                citations += [number] if number not in citations else []
        missing = any(quotation.source is None for quotation in quotations)
        return Sentence(
            start=self._offset(span.start),
            end=self._offset(span.end),
            text=text,
            citations=citations,
            unsupported=missing or not citations,
            quotations=quotations,
        )

    def _quoted(self, span: Span, text: str, citations: Sequence[int]) -> list[tuple[str, bool]]:
        """Return the quotations of a sentence, and whether each must occur in a passage.

        A short one is looked up only if it is the whole sentence, or if no passage mentions it. One that is not closed
        ends with its sentence, or with the next one. A line of a block quotation is one quotation, unless it consists
        of several and of words between them.
        """
        if span.kind == "code":
            code = _FENCES.sub("", span.text)
            return [(code, True)] if is_checked(code) else []
        spans = self._spans(text)
        if span.kind == "quotation" and is_checked(text) and (not spans or self._passages_index.find(text, citations)):
            return [(text, True)]
        spans = [quoted for quoted in spans if not self._passages_index.is_name(quoted.text.strip())]
        found = [quoted.text.strip() for quoted in spans]
        if span.kind == "quotation":
            edges = [0, *(edge for quoted in spans for edge in (quoted.start, quoted.end)), len(text)]
            found += [text[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
        return [
            (quotation, is_checked(quotation))
            for quotation in found
            if is_checked(quotation) or quotation == text.strip(OUTER_MARKS + " \t")
        ] + [(phrase, True) for phrase in self._unmentioned(text, spans, is_whole=span.kind == "quotation")]

    def _spans(self, text: str) -> list[Quoted]:
        """Return the quotations of a sentence, with one that is not closed, and the rest of one from before."""
        opened, self._unclosed = self._unclosed, ""
        spans, _ = quotations_in(text)
        continued = quotations_in(opened + text)[0][:1] if opened else []
        if continued and not continued[0].start:
            end = continued[0].end - len(opened)
            spans = [Quoted(0, end, continued[0].text), *(quoted for quoted in spans if quoted.start >= end)]
        elif (rest := unclosed_in(text)) and is_checked(rest.text):
            self._unclosed = text[rest.start : rest.end - len(rest.text)]
            spans = [*(quoted for quoted in spans if quoted.end <= rest.start), rest]
        return spans

    def _unmentioned(self, text: str, spans: Sequence[Quoted], *, is_whole: bool) -> Iterator[str]:
        """Yield the short texts in quotation marks, or the whole text, that no passage mentions."""
        if is_whole and not spans:
            spans = [Quoted(0, len(text), text)]
        for quoted in spans:
            phrase = quoted.text.strip()
            is_phrase = sum(map(str.isalpha, phrase)) > 1 and text[quoted.start] not in AMBIGUOUS_MARKS
            if is_phrase and not is_checked(phrase) and not self._passages_index.mentions(phrase):
                yield phrase
