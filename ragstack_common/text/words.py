"""The words of texts and queries in any language, as every index, reranker and answer compares them.

A word is a run of letters, combining marks and digits, or a number of several parts: see
:mod:`ragstack_common.text.numeric`. In Chinese, Japanese and Korean, each character is a word, and two neighbours are
a term too; :mod:`ragstack_common.text.segmentation` divides Thai, Lao, Khmer and Burmese. All other words are stemmed
by Snowball: by the language of the text for Latin letters, and by the script for others.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Final

import Stemmer  # type: ignore[import-not-found]

from ragstack_common.text.characters import DENSE_RANGES, HANGUL_RANGES
from ragstack_common.text.languages import ENGLISH, OWN_SHARE, STOP_WORDS, UNSPACED, detect
from ragstack_common.text.numeric import ATOM, canonical, further, is_number, may_have_numbers, spanning, written
from ragstack_common.text.segmentation import LETTERS, segmented
from ragstack_common.text.spelling import (
    arabic_stem,
    combining_marks,
    devanagari_spelling,
    normalized,
    with_ascii_digits,
    without_accents,
)

SATURATION: Final = 1.2
"""k1 of BM25: how fast repeated words count less. Source: Robertson and Zaragoza 2009, and Lucene."""

LENGTH_SHARE: Final = 0.75
"""b of BM25: how much the length of a text counts."""

MAX_TERMS: Final = 256
"""Terms of a query that are searched; the query may have 20,000 characters."""

MAX_REPEATS: Final = 4
"""How often a repeated term of a query counts at most, since BM25 sums over all of them.

It takes nDCG@10 of BM25 from .446 to .499 on CACM, whose questions are paragraphs, and hardly changes other sets.
"""

CHARACTERS_READ: Final = 10_000
WORDS_READ: Final = 2_000
"""The beginning of a text that decides its language."""

MAX_LANGUAGES: Final = 4
MIN_SHARE: Final = 0.01
"""The most frequent languages whose stems are searched, and the share of the texts that each must have."""

MAX_STEMS: Final = 200_000
"""Stems of a language that are kept in memory."""

_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_ASCII_OR_NUMBER: Final = re.compile(f"(?=[a-z0-9:])(?:{ATOM}|[a-z0-9]+)")
_OTHER_DIGIT: Final = re.compile(r"[^\D0-9]")
_SEGMENTED: Final = re.compile(f"[{LETTERS}]")
_SCRIPTS: Final = (
    ("\u0370", "\u03ff", "el"),
    ("\u0400", "\u052f", "ru"),
    ("\u0530", "\u058f", "hy"),
    ("\u0600", "\u06ff", "ar"),
    ("\u0900", "\u097f", "hi"),
    ("\u0b80", "\u0bff", "ta"),
    ("\u1e00", "\u1eff", ""),
    ("\u1f00", "\u1fff", "el"),
)
"""Stemmers of scripts; an empty tag stands for the language of the text. Other scripts after Latin have no stemmer."""

_NOT_LATIN: Final = "\u0370"
_FIRST_DENSE: Final = "\u0e00"
_STEMMED: Final = frozenset(STOP_WORDS) - {"th", "vi"} | {own for _, _, own in _SCRIPTS if own}
_OTHER_STOP_WORDS: Final = frozenset[str]().union(*(STOP_WORDS[tag] for _, _, tag in _SCRIPTS if tag in STOP_WORDS))
_STEMMING: Final = Lock()


def words(text: str) -> list[str]:
    """Return the normalized words of a text, in order."""
    return _canonical(_written_words(_prepared(text)))


def runs(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, normalized and in order; letters of scripts without spaces.

    They never change, because vectors depend on them.
    """
    return _runs(text.lower() if text.isascii() else normalized(text))


def _runs(prepared: str) -> list[str]:
    return (_ASCII_WORD if prepared.isascii() else _word()).findall(prepared)


def _prepared(text: str) -> str:
    if text.isascii():
        return text.lower()
    prepared = normalized(written(text))
    return with_ascii_digits(prepared) if _OTHER_DIGIT.search(prepared) else prepared


def _written_words(prepared: str) -> list[str]:
    if may_have_numbers(prepared):
        found = (_ASCII_OR_NUMBER if prepared.isascii() else _word_or_number()).findall(prepared)
    else:
        found = _runs(prepared) if prepared.isascii() else _word_in_run().findall(prepared)
    if prepared.isascii() or not _SEGMENTED.search(prepared):
        return found
    return [word for run in found for word in (segmented(run) if _SEGMENTED.match(run) else [run])]


def _canonical(found: Sequence[str]) -> list[str]:
    return [word if word.isalnum() or not word else canonical(word) for word in found]


def detect_language(*texts: str) -> str:
    """Return the tag of the language of some texts, which their first characters decide."""
    return detect(words("\n".join(texts)[:CHARACTERS_READ]))


def detect_languages(texts: Sequence[str]) -> list[str]:
    """Return the tag of the language of each part of a document.

    It is that of the document, unless the stop words of the part say clearly that it is in another one.
    """
    return [language for language, _, _ in _parts(texts)]


def terms_of_parts(texts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the language of each part of a document, as :func:`detect_languages` returns it, and its terms."""
    for language, prepared, found in _parts(texts):
        yield language, _terms(found, prepared, language, is_query=False)


def _parts(texts: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the language of each part of a document, its prepared text and its written words."""
    whole = detect_language(*texts)
    for text in texts:
        prepared = _prepared(text)
        found = _written_words(prepared)
        language = whole
        if len(texts) > 1:
            first = words(text[:CHARACTERS_READ]) if len(text) > CHARACTERS_READ else _canonical(found)
            language = detect(first, whole, OWN_SHARE)
        yield language, prepared, found


def terms(text: str | Sequence[str], language: str | None = None) -> list[str]:
    """Return the terms by which a text is found: those of its words in order, then those of numbers and codes.

    Args:
        text: The text, or its words.
        language: Its tag; detected by default. Without one (""), no word in Latin letters is stemmed.
    """
    prepared = _prepared(text) if isinstance(text, str) else "\n".join(text)
    found = _written_words(prepared) if isinstance(text, str) else text
    return _terms(found, prepared, language, is_query=False)


def _terms(found: Sequence[str], prepared: str, language: str | None, *, is_query: bool) -> list[str]:
    of_numbers: list[str] = []
    if may_have_numbers(prepared):
        several = [word for word in found if not word.isalnum() and is_number(word)]
        of_numbers = [term for word in several for term in further(word, is_query=is_query)] + spanning(prepared)
        found = _canonical(found)
    language = detect(found[:WORDS_READ]) if language is None else language
    stem = _stems(language).__getitem__
    if prepared.isascii() or max(found, default="") < _FIRST_DENSE:
        return [*map(stem, filter(None, found)), *of_numbers]
    stemmed, before = [], False
    for number, word in enumerate(found):
        if not word:
            before = False
            continue
        is_dense = _dense().match(word) is not None and not _SEGMENTED.match(word)
        if is_dense and before:
            stemmed.append(found[number - 1] + word)
        stemmed.append(word if is_dense else stem(word))
        before = is_dense
    return stemmed + of_numbers


def query_terms(text: str, language: str | None = None) -> Counter[str]:
    """Return the terms of a query that are searched, without stop words, and how often each counts.

    Different terms take precedence over repetitions. If there are only stop words, they are searched. The language is
    that of the texts, if it is known; detected by default.
    """
    prepared = _prepared(text)
    found = _written_words(prepared)
    return _query_terms(found, prepared, [detect(found[:WORDS_READ]) if language is None else language])


def search_terms(text: str, chunks: Mapping[str, int]) -> Counter[str]:
    """Return the terms by which a query is searched in texts of several languages, as :func:`query_terms` does.

    The query is stemmed in its own language. If its stop words don't say which one that is, or no text has it, the
    query is stemmed in the languages of the texts: "Häusern" is found by the stem that German texts have.

    Args:
        text: The query.
        chunks: The number of texts in each language, by its tag.
    """
    prepared = _prepared(text)
    found = _written_words(prepared)
    least = MIN_SHARE * sum(chunks.values())
    frequent = [tag for tag, count in Counter(chunks).most_common(MAX_LANGUAGES) if count > 0 and count >= least]
    own = detect(found[:WORDS_READ], "")
    return _query_terms(found, prepared, [own] if own in frequent else frequent or [own or ENGLISH])


def _query_terms(found: Sequence[str], prepared: str, languages: Sequence[str]) -> Counter[str]:
    # A stop word leaves a gap: the words before and after it are no neighbours.
    subject = ["" if any(is_stop_word(word, tag) for tag in languages) else word for word in found]
    subject = subject if any(subject) else [*found]
    counts = Counter[str]()
    for language in languages:
        counts |= Counter(_terms(subject, prepared, language, is_query=True))
    repeated = [term for turn in range(MAX_REPEATS) for term, count in counts.items() if count > turn]
    return Counter(repeated[:MAX_TERMS])


def is_stop_word(word: str, language: str) -> bool:
    """Whether a normalized word says nothing about a subject, in a language or in any of another script."""
    return word in STOP_WORDS.get(language, ()) or (word > _NOT_LATIN and word in _OTHER_STOP_WORDS)


class _Stems(dict[str, str]):
    """The stem of each word, for texts in one language."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_STEMS:
            self.clear()
        language, stem = self._language, with_ascii_digits(word)
        if word[0] >= _NOT_LATIN:
            language = next((own or language for first, last, own in _SCRIPTS if first <= word[0] <= last), "")
        if language == "hi":
            stem = devanagari_spelling(stem)
        if language == "ar" and word[0] >= _NOT_LATIN:
            stem = arabic_stem(stem)
        elif language in _STEMMED and not is_number(word):
            with _STEMMING:
                stem = _stemmer(language).stemWord(stem)
        self[word] = stem = without_accents(stem) or word
        return stem


@cache
def _stems(language: str) -> _Stems:
    """Return the stems of a language; words in Latin letters among Chinese and the like are mostly English."""
    return _Stems(ENGLISH if language in UNSPACED else language)


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language, 0)


@cache
def _dense() -> re.Pattern[str]:
    return re.compile(f"[{DENSE_RANGES}{HANGUL_RANGES}]")


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word; that of the standard library ends at combining marks."""
    marks, spaced = combining_marks(), rf"[^\W_{DENSE_RANGES}{HANGUL_RANGES}]+"
    return re.compile(rf"{spaced}(?:[{marks}]+(?:{spaced})?)*|[^\W_][{marks}]*")


@cache
def _word_or_number() -> re.Pattern[str]:
    return re.compile(rf"(?=[\w:{LETTERS}])(?:{ATOM}|{_word_in_run().pattern})")


@cache
def _word_in_run() -> re.Pattern[str]:
    return re.compile(f"[{LETTERS}]+|{_word().pattern}")
