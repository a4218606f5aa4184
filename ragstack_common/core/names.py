"""The form in which names compare: those of documents, labels, people, groups, tenants and corpora.

Unicode writes some letters in two ways, ``ä`` as one character or as two, and file systems prefer different ones: names
from a Mac are often decomposed. Both are the same name to a reader, so both are the same name to every rule, look-up
and filter. Upper and lower case differ, and so do letters that only look alike, such as a Latin and a
Cyrillic a.

The key of an object is called as the bucket has it, because S3 compares bytes.
"""

import unicodedata
from typing import Any


def canonical(name: str) -> str:
    """Return a name in the form in which names compare.

    Source: Unicode Standard Annex #15, normalization form C.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def forms(name: str) -> tuple[str, ...]:
    """Return the usual ways to write a name: as received, composed and decomposed, without repetitions."""
    return tuple(dict.fromkeys((name, canonical(name), unicodedata.normalize("NFD", name))))


def canonical_if_text(value: Any) -> Any:
    """Return a text, or the texts of a list, in the form in which names compare; other values as they are."""
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, list | tuple):
        return type(value)(canonical_if_text(each) for each in value)
    return value
