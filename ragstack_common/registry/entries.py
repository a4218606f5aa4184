"""A line for each document, and the documents that have some words or values, found in the bytes of all lines."""

import heapq
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from ragstack_common.core.artefacts import MARK, mail_of, mails_of
from ragstack_common.core.uris import file_name, key_of_uri
from ragstack_common.filters import Scalar
from ragstack_common.registry.catalogue import ALL_DOCUMENTS, values_of
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import document_id
from ragstack_common.text.names import NameWord, words_to_index

MAX_INDEXED_WORDS: Final = 200
"""Words by which a document is found: those of its name first."""

MAX_RANKED: Final = 5_000
"""Documents among which the first ones are chosen: it takes a tenth of a second."""

MAX_COUNTED_WORDS: Final = 4
"""Words that are counted to find the rarest one."""

MAX_NAMED_VALUES: Final = 20_000
"""The most frequent values of each label, from which questions are understood."""

_DIVIDER: Final = b"\x1f"
_ATTACHED: Final = f"{MARK}/".encode()
_ID: Final = 32
"""Characters of a document's id."""

Pair: TypeAlias = tuple[str, str]
"""An attribute and the JSON text of a value."""


class Entry(NamedTuple):
    """A document as the directory has it; of an attribute that has changed since it was indexed, both values."""

    uri: str
    revision: int
    label: str | None
    values: tuple[tuple[str, Scalar], ...]


def to_line(record: DocumentRecord, revision: int) -> bytes | None:
    """Return the line of a document, five parts: id, label, words of the name, other words, and the rest as JSON."""
    if record.status is Status.DELETED:
        return None
    given = (*values_of(record.observed.attributes), *record.counted)
    # 2024.0 and 2024 are one value: the table keeps whole numbers without a decimal point.
    values = dict.fromkeys((key, text.removesuffix(".0")) for key, text in given if (key, text) != ALL_DOCUMENTS)
    key = key_of_uri(record.uri) or record.uri
    own = words_to_index([file_name(key)])[:MAX_INDEXED_WORDS]
    texts = [key, *(part for name, text in values for part in (name, str(json.loads(text))))]
    others = [word for word in words_to_index(texts) if word not in {*own}][: MAX_INDEXED_WORDS - len(own)]
    pairs = ",".join(_pair(each) for each in values)
    stored = f"[{_json(record.uri)},{revision},{_json(record.label)},[{pairs}]]"
    parts = (record.id, _json(record.label), f" {' '.join(own)} ", f" {' '.join(others)} ", stored)
    return _DIVIDER.join(part.encode("utf-8", "replace") for part in parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pair(pair: Pair) -> str:
    return f"[{_json(pair[0])},{pair[1]}]"


def parse_line(line: bytes) -> Entry:
    """Return the document of a line."""
    uri, revision, label, values = json.loads(line.rpartition(_DIVIDER)[2])
    return Entry(uri, revision, label, tuple((key, value) for key, value in values))


@dataclass(frozen=True)
class NamedValues:
    """How many documents have each value, by label, whatever their status; attachments of mails are left out."""

    of_labels: Mapping[str, Mapping[str, Mapping[str, int]]]

    def seen_with(self, labels: Collection[str] | None) -> dict[str, dict[Scalar, int]]:
        """Return the counts of values of the documents with some labels, or of all, by attribute."""
        wanted = self.of_labels if labels is None else {_json(label) for label in labels} & self.of_labels.keys()
        found: dict[str, Counter[Scalar]] = {}
        for label in sorted(wanted):
            for key, counts in self.of_labels[label].items():
                own = found.setdefault(key, Counter())
                for text, count in counts.items():
                    value = json.loads(text)
                    if not isinstance(value, bool):  # which equals 0 or 1, and is never named
                        own[value] += count
        return {key: dict(counts) for key, counts in found.items()}


def count_values(lines: Iterable[bytes], left_out: Collection[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the values of each label, as JSON texts; of too many, the most frequent ones."""
    counts: dict[str, Counter[Pair]] = {}
    for entry in map(parse_line, lines):
        if mail_of(entry.uri) is None:
            own = counts.setdefault(_json(entry.label), Counter())
            own.update((key, _json(value)) for key, value in entry.values if key not in left_out)
    found: dict[str, dict[str, dict[str, int]]] = {}
    for label, own in counts.items():
        for (key, text), count in sorted(own.items(), key=lambda each: (-each[1], each[0]))[:MAX_NAMED_VALUES]:
            found.setdefault(label, {}).setdefault(key, {})[text] = count
    return found


@dataclass(frozen=True)
class Entries:
    """The lines of all documents.

    Attributes:
        lines: Those of the object, sorted by id, each between two line ends.
        changed: Those that replace others, or that are new.
        replaced: The ids whose line in the object does not count.
        values: The values of the object's documents.
    """

    lines: bytes
    changed: Sequence[bytes]
    replaced: Collection[bytes]
    values: NamedValues

    def named(self, words: Sequence[NameWord], labels: Collection[str] | None, limit: int) -> list[Entry]:
        """Return documents of some labels, or of all, that have each word in name, folder or attributes.

        A word is found by its beginning. First come the documents that have more of the words as a whole in their
        names, then as a whole elsewhere; of very many, :data:`MAX_RANKED` are compared.
        """
        if not words:
            return []
        matching = (line for line in self._with(self._rarest(words)) if _has_all(line, words))
        whole = [f" {word.text} ".encode() for word in words]

        def order(line: bytes) -> tuple[int, int, bytes]:
            _, _, name, others, stored = line.split(_DIVIDER)
            in_name = sum(word in name for word in whole)
            return -in_name, -in_name - sum(word in others and word not in name for word in whole), stored

        compared = islice(self._visible(matching, labels), MAX_RANKED)
        return [*map(parse_line, heapq.nsmallest(limit, compared, key=order))]

    def _rarest(self, words: Sequence[NameWord]) -> bytes:
        """Return what the lines with all words have, and few others."""
        longest = sorted(words, key=lambda word: -len((word.parts or (word.text,))[0]))[:MAX_COUNTED_WORDS]
        needles = [_needle((word.parts or (word.text,))[0], within=word.is_within) for word in longest]
        return min(needles, key=self.lines.count) if len(needles) > 1 else needles[0]

    def having(
        self, alternatives: Sequence[Sequence[tuple[str, Scalar]]], labels: Collection[str] | None
    ) -> list[Entry]:
        """Return the documents of some labels, or of all, that have one pair of each group of attribute and value."""
        groups = [[f"[{_json(key)},{_json(value)}]".encode() for key, value in group] for group in alternatives]
        first = min(groups, key=len)
        lines = {line: None for pair in first for line in self._with(pair)}
        having = [line for line in lines if all(any(pair in line for pair in group) for group in groups)]
        return [parse_line(line) for line in self._visible(having, labels)]

    def of(self, identifier: str) -> Entry | None:
        """Return the document with an id; None if there is none."""
        name = identifier.encode()
        line = next((each for each in self.changed if each.startswith(name)), None)
        if line is None and name not in self.replaced:
            line = find_line(self.lines, name)
        return None if line is None else parse_line(line)

    def _visible(self, lines: Iterable[bytes], labels: Collection[str] | None) -> Iterator[bytes]:
        """Yield the lines of documents with one of the labels, and whose mails, if any, have one too."""
        if labels is None:
            yield from lines
            return
        seen = {_json(label).encode() for label in labels}
        for line in lines:
            if line.split(_DIVIDER, 2)[1] in seen:
                mails = mails_of(parse_line(line).uri) if _ATTACHED in line else ()
                if all((mail := self.of(document_id(uri))) is not None and mail.label in labels for uri in mails):
                    yield line

    def _with(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines that contain a text."""
        yield from (line for line in self.changed if text in line)
        lines, at = self.lines, self.lines.find(text)
        while at >= 0:
            start, end = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
            if lines[start : start + _ID] not in self.replaced:
                yield lines[start:end]
            at = lines.find(text, end)


def _needle(text: str, *, within: bool) -> bytes:
    return (text if within else f" {text}").encode()


def _has_all(line: bytes, words: Iterable[NameWord]) -> bool:
    _, _, name, others, _ = line.split(_DIVIDER)
    return all(_has(name + others, word) for word in words)


def _has(words: bytes, word: NameWord) -> bool:
    if _needle(word.text, within=word.is_within) in words:
        return True
    return bool(word.parts) and all(_needle(part, within=False) in words for part in word.parts)


class _Lines:
    """The lines of an object as a sequence of ids at places, for a binary search."""

    def __init__(self, lines: bytes) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: int) -> bytes:
        """Return the id of the line that contains a character."""
        start = self._lines.rfind(b"\n", 0, place) + 1
        return self._lines[start : start + _ID]


def find_line(lines: bytes, identifier: bytes) -> bytes | None:
    """Return the line with an id from lines that are sorted by id, each with a line end after it."""
    found = _Lines(lines)
    place = bisect_left(found, identifier)
    if place >= len(lines) or found[place] != identifier:
        return None
    start = lines.rfind(b"\n", 0, place) + 1
    return lines[start : lines.find(b"\n", place)]


def lines_by_id(lines: bytes) -> dict[bytes, bytes]:
    """Divide lines."""
    return {line[:_ID]: line for line in lines.split(b"\n") if line}
