"""Subtitles (WebVTT, SubRip): sentences with the time at which they begin, so that a quotation says when.

Source: WebVTT, W3C Candidate Recommendation, 2019; SubRip has no specification.
"""

# ruff: noqa: RUF001 - ends of sentences in other languages

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.markdown import Blocks

_TIMES: Final = re.compile(
    r"^[ \t]*((?:\d+:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,3})?)[ \t]*-->[ \t]*((?:\d+:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,3})?)"
)
_NO_CUE: Final = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t\n]|\Z)")
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n)+")
_VOICE: Final = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]+)>")
_TAG: Final = re.compile(r"</?[A-Za-z][^>]*>|<[\d:.]+>|\{\\[^}]*\}|<>|</?>")
_ENDS_SENTENCE: Final = re.compile(r"[.!?…。！？؟।][\"'”’»)\]]*\Z")
_MAX_PAUSE_SECONDS: Final = 4.0
_MAX_CHARACTERS: Final = 400
"""Characters of the cues of a sentence that are joined; automatic subtitles have no ends of sentences."""


@dataclass
class _Cue:
    begin: float
    end: float
    text: str
    voice: str = ""


def read(data: bytes, charset: str | None = None) -> str:
    """Return a paragraph for each sentence with its time and who says it: ``[00:01:02] Ana: Yes``.

    Raises:
        UnreadableDocument: It is not text.
    """
    blocks = Blocks()
    for cue in _joined(_cues(decoded(data, charset))):
        voice = f"{cue.voice}: " if cue.voice else ""
        blocks.paragraph(f"[{_time(cue.begin)}] {voice}{cue.text}")
    return str(blocks)


def _cues(text: str) -> Iterator[_Cue]:
    """Yield the texts of the cues, those of each voice apart, without lines that the cue before shows already."""
    begin = end = 0.0
    before: list[str] = []
    text = "\n".join(text.splitlines())
    if text.startswith("WEBVTT"):
        text = "\n\n".join(block for block in _BLANK_LINES.split(text) if not _NO_CUE.match(block))
    for times, lines in _timed(text.split("\n")):
        begin, end = map(_seconds, times)
        is_repeated = before and len(lines) > 1 and _plain(lines[0]) == before[-1]
        shown = lines[1:] if is_repeated else lines
        pieces = _VOICE.split("\n".join(shown))
        for voice, piece in zip(["", *pieces[1::2]], pieces[0::2], strict=True):
            if written := markdown.one_line(_plain(piece)):
                yield _Cue(begin, end, written, markdown.one_line(unescape(voice)))
        before = [each for each in map(_plain, lines) if each] or before


def _timed(lines: list[str]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the times and lines of each cue."""
    places = [place for place, line in enumerate(lines) if _TIMES.match(line)]
    for place, following in zip(places, [*places[1:], len(lines)], strict=False):
        found = _TIMES.match(lines[place])
        own = lines[place + 1 : following]
        if following < len(lines) and own and _is_identifier(own):
            own.pop()
        if found:
            yield (found[1], found[2]), [line for line in own if line.strip()]


def _is_identifier(lines: list[str]) -> bool:
    """Whether the last line before the times of a cue is its name or number."""
    last = lines[-1].strip()
    return last.isdigit() or (bool(last) and len(lines) > 1 and not lines[-2].strip())


def _plain(line: str) -> str:
    return unescape(_TAG.sub("", line)).strip()


def _joined(cues: Iterator[_Cue]) -> Iterator[_Cue]:
    """Yield the cues of each sentence as one."""
    sentence: _Cue | None = None
    for cue in cues:
        if sentence and (
            _ENDS_SENTENCE.search(sentence.text)
            or cue.voice != sentence.voice
            or cue.begin - sentence.end > _MAX_PAUSE_SECONDS
            or len(sentence.text) + len(cue.text) > _MAX_CHARACTERS
        ):
            yield sentence
            sentence = None
        if sentence:
            sentence.text += f" {cue.text}"
            sentence.end = cue.end
        else:
            sentence = cue
    if sentence:
        yield sentence


def _seconds(time: str) -> float:
    seconds = 0.0
    for part in time.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
