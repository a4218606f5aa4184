"""Copies of chunks that share nothing with them that can be changed, made in a few microseconds.

A chunk is frozen, but its metadata are a dictionary, and may hold lists.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ragstack_common.retrieval.models import Ranking, RetrievedChunk

_UNCHANGEABLE: Final = frozenset({str, int, float, bool, type(None), bytes})


class OwnCopies:
    """Makes copies of chunks as they are now, over and over.

    What has to be copied is found out once. Each copy is restored by the protocol of pickling, from the state that the
    model gives of itself, which takes half as long as ``model_copy``.

    Args:
        chunks: The chunks; what becomes of them afterwards does not matter.
    """

    def __init__(self, chunks: Sequence[RetrievedChunk]) -> None:
        self._moulds = [_Mould(chunk) for chunk in chunks]

    def made(self) -> list[RetrievedChunk]:
        """Return new chunks, in the order of those that were given."""
        return [mould.cast() for mould in self._moulds]


class _Mould:
    """One chunk's state, and the names of the fields and attributes of which every copy needs its own."""

    __slots__ = ("attributes", "fields", "kind", "state")

    def __init__(self, chunk: RetrievedChunk) -> None:
        self.kind = type(chunk)
        own = chunk.model_copy(deep=True)
        self.state: dict[Any, Any] = own.__getstate__()
        fields = self.state["__dict__"]
        self.fields = [name for name, value in fields.items() if name != "metadata" and not _fixed(value)]
        self.attributes = [name for name, value in own.metadata.items() if not _fixed(value)]

    def cast(self) -> RetrievedChunk:
        fields: dict[str, Any] = self.state["__dict__"].copy()
        fields["metadata"] = metadata = fields["metadata"].copy()
        for name in self.attributes:
            metadata[name] = _own(metadata[name])
        for name in self.fields:
            fields[name] = _own(fields[name])
        chunk = self.kind.__new__(self.kind)
        chunk.__setstate__({**self.state, "__dict__": fields})
        return chunk


def _fixed(value: Any) -> bool:
    return type(value) in _UNCHANGEABLE


def _own(value: Any) -> Any:
    kind = type(value)
    if kind is list:
        return [part if type(part) in _UNCHANGEABLE else _own(part) for part in value]
    if kind is Ranking:
        return replace(value, signals=dict(value.signals))
    if kind is dict:
        return {name: part if type(part) in _UNCHANGEABLE else _own(part) for name, part in value.items()}
    return value if kind in _UNCHANGEABLE else copy.deepcopy(value)
