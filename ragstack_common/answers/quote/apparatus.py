"""What is in a document and not quoted: images, addresses, tables of contents, footnotes and references."""

# ruff: noqa: RUF001 - words and dashes of several scripts

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ragstack_common.text.words import detect_language, terms

_TARGET: Final = (
    r"\([ \t]{0,5}(?:<[^<>\n]{0,500}>|[^\s()]{0,500}(?:\([^\s()]{0,100}\)[^\s()]{0,100}){0,5})"
    r"(?:\s{1,5}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s{0,5}\)"
)
_IMAGE: Final = re.compile(rf"!\[[^\[\]\n]{{0,500}}\]{_TARGET}|<img\b[^<>]{{0,2000}}>", re.IGNORECASE)
_LINK: Final = re.compile(rf"(?<!!)\[([^\[\]\n]{{0,500}})\]{_TARGET}")
_ADDRESS: Final = re.compile(r"(?:https?://|www\.)\S+|\bdata:[\w/+.-]+;\S+", re.IGNORECASE)
_MARKS: Final = re.compile(r"(?<=[.!?…。！？\"”’»])(?:[\[(]\d{1,3}[\])])+(?=\s|\Z)")
"""Marks of footnotes after a sentence."""

_FOOTNOTE: Final = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:\*{0,2}\^\*{0,2}|↑|\[\^[^\]\n]{1,40}\]:)")
_DATE: Final = (
    r"(?:\d{1,2}(?:er|st|nd|rd|th|\.)? (?:de )?[^\W\d_]{3,10}\.?,? (?:de )?\d{4}(?: г\.| года)?"
    r"|[^\W\d_]{3,10}\.? (?:\d{1,2}, )?\d{4}|\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4})"
)
_VISITED: Final = (
    r"(?:Retrieved|Accessed|Archived|Abgerufen|Archiviert|Consulté|Consultado|Дата обращения):?"
    rf"(?:[\s,]+(?>(?:on|from|am|vom|le|el|at|the original|the Wayback Machine)\b|(?:https?://|www\.)\S+|{_DATE}))++"
)
_IDENTIFIED: Final = r"(?:ISBN|ISSN)(?:-1[03])?[ :-]*\d[\dXx \u2010-\u2015-]*+|doi ?: ?10\.\S+|arXiv:\d\S*"
_CITATION: Final = re.compile(
    r"(?:\A\s*|(?<=[.,;:)\]\"”’'–—|] )|(?<=[(\[]))"
    rf"(?:(?:{_VISITED}|{_IDENTIFIED})[\s.,;)\]]*+)++\Z"
)
"""The end of a citation, or a sentence that is one: the day of a visit, or the number of a publication."""

_SOURCE_WORDS: Final = re.compile(
    "Retrieved|Accessed|Archived|Abgerufen|Archiviert|Consulté|Consultado|обращения|ISBN|ISSN|doi|arXiv"
)
_ENTRY: Final = re.compile(r"\S\s*+(?:[.·…_]\s*+){3}(\d{1,4})\s*+\Z")
"""The end of an entry of a table of contents."""


def readable(text: str, question: str = "") -> str:
    """Return a quotation as a reader sees it: without images, the targets of links and the marks of footnotes.

    Args:
        text: The quotation.
        question: What it answers: a citation is kept if the question asks for what it ends with, such as an ISBN.

    Returns:
        Empty for a footnote, a citation, or a text that has only images and addresses.
    """
    if _FOOTNOTE.match(text) or _is_citation(text, question):
        return ""
    shown = _MARKS.sub("", _LINK.sub(r"\1", _IMAGE.sub("", text))).strip()
    letters = sum(map(str.isalnum, _ADDRESS.sub("", shown)))
    return shown if letters > 1 else ""


def _is_citation(text: str, question: str) -> bool:
    ending = _CITATION.search(text)
    if ending is None:
        return False
    language = detect_language(question)
    return set(terms(question, language)).isdisjoint(terms(" ".join(_SOURCE_WORDS.findall(ending[0])), language))


def contents_in(lines: Sequence[str]) -> frozenset[int]:
    """Return which lines are the entries of a table of contents: names, leaders, and page numbers that don't fall.

    A price list has leaders, too, but amounts with cents, or in any order.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    found: set[int] = set()
    for is_entry, group in groupby(filled, key=lambda number: _ENTRY.search(lines[number]) is not None):
        numbers = [*group]
        if not is_entry or len(numbers) < 3:  # noqa: PLR2004 - fewer may be a coincidence
            continue
        pages = [int(entry[1]) for number in numbers if (entry := _ENTRY.search(lines[number]))]
        if pages == sorted(pages):
            found |= {*numbers}
    return frozenset(found)
