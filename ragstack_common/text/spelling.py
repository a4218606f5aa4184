"""One form for words that are written in several ways: with case, accents, clitics, optional marks and own digits."""

# ruff: noqa: RUF001 - letters of other scripts are the subject

import re
import unicodedata
from functools import cache
from typing import Final

MIN_STEM: Final = 3
"""Letters of an Arabic stem after a conjunction, and of a root."""

MIN_SHORT_STEM: Final = 2
"""Letters of an Arabic stem without an article or an ending."""

_ALEFS: Final = str.maketrans("أإآٱىؤئةگکی", "اااايوءهككي")
_CLITICS: Final = ("وال", "بال", "كال", "فال", "ولل", "ال", "لل")
_ENDINGS: Final = ("ها", "ان", "ات", "ون", "ين", "يه", "هم", "ه", "ي", "ا")
_LONG_VOWELS: Final = str.maketrans("", "", "اويء")
_AUGMENTS: Final = "متنيا"
_PREPOSITIONS: Final = "بلكفس"
_NASAL_BEFORE_CONSONANT: Final = re.compile("[ङञणनम]\u094d(?=[क-म])")
_CANDRABINDU: Final = "\u0901"
_ANUSVARA: Final = "\u0902"
_NUKTA: Final = "\u093c"


_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u0640" + "".join(map(chr, range(0x64B, 0x653)))
"""Soft hyphens, joiners and zero-width spaces, which PDF files leave within words, and Arabic's optional marks."""


def normalized(text: str) -> str:
    """Return a text in the form in which texts are compared, without invisible characters.

    Source: Unicode, section 3.13, compatibility caseless matching.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    for character in _INVISIBLE:
        if character in folded:
            folded = folded.replace(character, "")
    return folded


@cache
def combining_marks() -> str:
    """Return the marks that belong to the letter before them."""
    return "".join(chr(code) for code in range(0x300, 0xAC00) if unicodedata.category(chr(code))[0] == "M")


def with_ascii_digits(text: str) -> str:
    """Replace the decimal digits of other scripts; the length stays."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in text)


_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_LETTERS: Final = str.maketrans(
    dict(zip("œæøłđðþħŧıßŋəĸ", "oe ae o l d d th h t i ss n a k".split(), strict=True))  # noqa: SIM905
)
"""Small letters without a decomposition. In capitals, Turkish texts have I for both of its letters."""


def without_accents(text: str) -> str:
    """Return a text in small letters without the marks on Latin, Greek and Cyrillic letters, and with œ as oe."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text))).translate(_LETTERS)


def is_arabic(word: str) -> bool:
    """Whether a word begins with an Arabic letter."""
    return "\u0600" <= word[:1] <= "\u06ff"


def arabic_stem(word: str) -> str:
    """Return a word without its conjunction, article and ending, and with one form of alef, ya and ta marbuta.

    Source: Larkey, Ballesteros and Connell 2007, "Light stemming for Arabic information retrieval", light10, which
    stems a word alike with and without its article; the Snowball stemmer does not.
    """
    stem = word.translate(_ALEFS)
    for clitic in _CLITICS:
        if stem.startswith(clitic) and len(stem) - len(clitic) >= MIN_SHORT_STEM:
            stem = stem[len(clitic) :]
            break
    else:
        if stem[0] == "و" and len(stem) > MIN_STEM:
            stem = stem[1:]
    for ending in _ENDINGS:
        if stem.endswith(ending) and len(stem) - len(ending) >= MIN_SHORT_STEM:
            stem = stem[: -len(ending)]
    return stem


def arabic_roots(stem: str) -> frozenset[str]:
    """Return the consonants of a stem without those that derive words, as broken plurals and verbs share them.

    There are two if the stem may begin with a preposition, and none if fewer than three consonants remain.
    """
    is_prefixed = stem[0] in _PREPOSITIONS and len(stem) > MIN_STEM + 1
    roots = {_root(stem), _root(stem[1:])} if is_prefixed else {_root(stem)}
    return frozenset(root for root in roots if len(root) >= MIN_STEM)


def _root(stem: str) -> str:
    root = stem.translate(_LONG_VOWELS)
    return root[1:] if len(root) > MIN_STEM and root[0] in _AUGMENTS else root


def devanagari_spelling(word: str) -> str:
    """Return a word without nuktas, and with an anusvara for every nasal before a consonant."""
    spelled = word.replace(_NUKTA, "").replace(_CANDRABINDU, _ANUSVARA)
    return _NASAL_BEFORE_CONSONANT.sub(_ANUSVARA, spelled)
