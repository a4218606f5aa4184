"""JSON and JSON Lines: each value as it is written, with all digits of its numbers."""

import json
import re
from typing import Any, Final

from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.plain import records
from ragstack_common.reading.plain.records import Record

_SPACE: Final = re.compile(r"[\s,;\x1e]*")
"""What may be between two values of a file that has several."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Record, parse_int=_Number, parse_float=_Number, parse_constant=_Number, strict=False
)


def read(data: bytes, charset: str | None = None) -> str:
    """Return the values of a file in Markdown; a file that is not JSON is read as the text that it is.

    Raises:
        RecursionError: It is nested too deeply.
        UnreadableDocument: It is not text.
    """
    written = decoded(data, charset)
    values: list[Any] = []
    place = _after_space(written, 0)
    while place < len(written):
        try:
            value, place = _DECODER.raw_decode(written, place)
        except ValueError:
            return written.replace("\r\n", "\n")
        values.append(value)
        place = _after_space(written, place)
    return records.write(values[0] if len(values) == 1 else values)


def _after_space(written: str, place: int) -> int:
    found = _SPACE.match(written, place)
    return found.end() if found else place
