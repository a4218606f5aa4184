"""Words of queries and texts, independent of case, Unicode form, punctuation and line breaks."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Final
from unicodedata import category, normalize

from ragstack_common.text.stopwords import STOP_WORDS

FIRST_NON_ASCII: Final = "\x80"
LEAST_CORE_WORDS: Final = 2

MOST_TERMS: Final = 256
MOST_PHRASES: Final = 20
MOST_WORDS_IN_PHRASE: Final = 200
"""What counts of a query, which may have 20,000 characters. A longer phrase is in no chunk."""

_INVISIBLE: Final = ("\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff")
"""Soft hyphens, joiners and zero-width spaces, which PDF files leave within words."""

_CLITIC: Final = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|ll|re|ve)\b")
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|\u201c([^\u201c\u201d]+)\u201d|\u00ab([^\u00ab\u00bb]+)\u00bb")
_NOTHING: Final = re.compile(r"(?!)")
_BETWEEN: Final = r"[\W_]+"
_MAYBE_BETWEEN: Final = r"[\W_]*"

_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # iteration marks
    (0x3040, 0x31FF),  # Hiragana, Katakana, Bopomofo
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts without spaces between words, or with attached endings. Source: Unicode, blocks."""


@dataclass(frozen=True)
class Query:
    """The parts of a query.

    Attributes:
        terms: The search terms, each once: the words without stop words, or all words if there are no others; pairs
            of characters in scripts without spaces.
        phrases: Phrases to find word for word, each with its value up to 1, best first: the quoted parts if there are
            any, else the query, and the query without the stop words at its ends.
        quoted: Whether every phrase counts, not only the best one.
    """

    terms: tuple[str, ...]
    phrases: tuple[tuple[re.Pattern[str], float], ...]
    quoted: bool


def normalized(text: str) -> str:
    """Return a text in the form in which texts are compared.

    Source: Unicode, section 3.13, compatibility caseless matching.
    """
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    for character in _INVISIBLE:
        if character in folded:
            folded = folded.replace(character, "")
    return folded


def parsed(query: str) -> Query:
    """Parse a query."""
    text = normalized(query)
    quoted = [tuple(_words(part)) for match in _QUOTED.finditer(text) for part in match.groups() if part]
    quoted = [words for words in quoted if words][:MOST_PHRASES]
    words = tuple(_words(text))
    keywords = [word for word in _words(_CLITIC.sub("", text)) if word not in STOP_WORDS] or words
    terms = tuple(islice(dict.fromkeys(term for word in keywords for term in _pairs(word)), MOST_TERMS))
    if quoted:
        return Query(terms, tuple((phrase(part), 1 / len(quoted)) for part in quoted), quoted=True)
    phrases = [(phrase(words), 1.0)] if words else []
    core = _core(words)
    if LEAST_CORE_WORDS <= len(core) < len(words):
        phrases.append((phrase(core), len(core) / len(words)))
    return Query(terms, tuple(phrases), quoted=False)


def stands_in(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a normalized text contains a phrase as whole words."""
    return any(is_whole(text, *match.span()) for match in pattern.finditer(text))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of any text, normalized."""
    return tuple(_words(normalized(text)))


def places(term: str, text: str, most: int) -> list[int]:
    """Return the first *most* positions of a term as a whole word in a normalized text."""
    found: list[int] = []
    length, is_ascii = len(term), term.isascii()
    place = text.find(term)
    while place >= 0 and len(found) < most:
        end = place + length
        before, after = text[place - 1 : place], text[end : end + 1]
        if is_ascii and before < FIRST_NON_ASCII > after:
            whole = not (before.isalnum() or after.isalnum())
        else:
            whole = is_whole(text, place, end)
        if whole:
            found.append(place)
        place = text.find(term, end if whole else place + 1)
    return found


def is_whole(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text begins and ends at word boundaries."""
    if start:
        before = text[start - 1]
        if (before >= FIRST_NON_ASCII or before.isalnum()) and not _apart(before, text[start]):
            return False
    if end < len(text):
        after = text[end]
        if (after >= FIRST_NON_ASCII or after.isalnum()) and not _apart(text[end - 1], after):
            return False
    return True


def _apart(left: str, right: str) -> bool:
    if left < FIRST_NON_ASCII > right:
        return not (left.isalnum() and right.isalnum())
    return not (_in_word(left) and _in_word(right)) or _unspaced(left) or _unspaced(right)


def _in_word(character: str) -> bool:
    return character.isalnum() or (character >= FIRST_NON_ASCII and category(character)[0] == "M")


def _unspaced(character: str) -> bool:
    if character < FIRST_NON_ASCII:
        return False
    code = ord(character)
    return any(first <= code <= last for first, last in _UNSPACED)


def _words(text: str) -> Iterator[str]:
    """Yield runs of letters and digits; a run ends where a script without spaces begins."""
    for kind, run in groupby(text, _kind):
        if kind:
            yield "".join(run)


def _kind(character: str) -> int:
    return _in_word(character) * (1 + _unspaced(character))


def _pairs(word: str) -> Iterable[str]:
    if not _unspaced(word[0]) or len(word) == 1:
        return (word,)
    return (first + second for first, second in pairwise(word))


def _core(words: tuple[str, ...]) -> tuple[str, ...]:
    kept = [place for place, word in enumerate(words) if word not in STOP_WORDS]
    return words[kept[0] : kept[-1] + 1] if kept else ()


def phrase(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for normalized words in a row, with any punctuation between them; too many match nothing."""
    if len(words) > MOST_WORDS_IN_PHRASE:
        return _NOTHING
    pattern = re.escape(words[0])
    for left, right in pairwise(words):
        pattern += (_MAYBE_BETWEEN if _unspaced(left[-1]) or _unspaced(right[0]) else _BETWEEN) + re.escape(right)
    return re.compile(pattern)
