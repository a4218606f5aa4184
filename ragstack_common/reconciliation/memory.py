"""What is remembered of each document while registry, bucket and knowledge base are read.

Not its name: its id, which is a digest of the name, and by which the registry finds it again; and one number that
holds where it stands, where it was seen, and prints of its entity tags. A million documents take 130 MB (measured:
the process grows from 33 to 165 MB).

The prints have 27 bits and are salted anew each time: a change that goes unnoticed in one comparison, which happens
once in a hundred million, is noticed in the next.
"""

import secrets
from collections.abc import Iterator
from enum import IntEnum
from hashlib import blake2b
from typing import Final

from ragstack_common.registry.table import document_id

IN_BUCKET: Final = 1 << 3
SIDECAR_IN_BUCKET: Final = 1 << 4
IN_KNOWLEDGE_BASE: Final = 1 << 5

_STANDING_BITS: Final = 0b111
_ETAG_SHIFT: Final = 6
_PRINT_BITS: Final = 27
_SIDECAR_SHIFT: Final = _ETAG_SHIFT + _PRINT_BITS
_PRINT: Final = (1 << _PRINT_BITS) - 1
_HEXADECIMAL: Final = 16


class Standing(IntEnum):
    """Where a document stands in the registry, as far as the comparison is concerned."""

    UNKNOWN = 0
    MOVING = 1
    """On its way, or reported already: nothing more is said of it."""
    SEARCHABLE = 2
    FAILED = 3
    DELETED = 4


def number_of(uri: str) -> int:
    """Write a document's id as a number, which takes less memory."""
    return int(document_id(uri), _HEXADECIMAL)


def id_of(number: int) -> str:
    """Write a number as the id that it came from."""
    return f"{number:032x}"


class Memory:
    """Documents by the number of their id."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[int, int] = {}
        self._salt = secrets.token_bytes(16)

    def __len__(self) -> int:
        """Count the documents."""
        return len(self._known)

    def __iter__(self) -> Iterator[int]:
        """Go through the documents, in the order in which they were remembered."""
        return iter(self._known)

    def remember(self, number: int, standing: Standing, etag: str | None = None, sidecar: str | None = None) -> None:
        """Take in what the registry says of a document."""
        self._known[number] = standing | self._print(etag) << _ETAG_SHIFT | self._print(sidecar) << _SIDECAR_SHIFT

    def mark(self, number: int, where: int) -> None:
        """Note where a document was seen; one that the registry does not know is remembered as such."""
        self._known[number] = self._known.get(number, Standing.UNKNOWN) | where

    def drop(self, number: int) -> None:
        """Say nothing more of a document."""
        self._known[number] = self._known.get(number, 0) & ~_STANDING_BITS | Standing.MOVING

    def standing(self, number: int) -> Standing | None:
        """Tell where a document stands; None for one that was never heard of."""
        known = self._known.get(number)
        return None if known is None else Standing(known & _STANDING_BITS)

    def was_seen(self, number: int, where: int) -> bool:
        """Tell whether a document was seen there."""
        return bool(self._known.get(number, 0) & where)

    def has_sidecar(self, number: int) -> bool:
        """Tell whether the registry knows a sidecar of the document."""
        return bool(self._known[number] >> _SIDECAR_SHIFT)

    def has_etag(self, number: int, etag: str) -> bool:
        """Tell whether the registry knows the document with this entity tag."""
        return self._known[number] >> _ETAG_SHIFT & _PRINT == self._print(etag)

    def has_sidecar_etag(self, number: int, etag: str) -> bool:
        """Tell whether the registry knows the document's sidecar with this entity tag."""
        return self._known[number] >> _SIDECAR_SHIFT == self._print(etag)

    def _print(self, etag: str | None) -> int:
        if etag is None:
            return 0
        digest = blake2b(etag.strip('"').encode(), digest_size=4, key=self._salt).digest()
        return int.from_bytes(digest) & _PRINT or 1
