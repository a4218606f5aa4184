"""Count what a file has, in a process of its own: see ``viewing``, which does the same for people.

A message is ``{"format": "pdf", "charset": null, "column": null, "recognized": [...]} <line end> <file>``, and the
answer ``{"counted": {...}}`` or ``{"unreadable": "reason"}``.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from ragstack_common.reading import formats
from ragstack_common.reading.census.parts import Aside, Census, Part
from ragstack_common.reading.conversion import explained
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import (
    TOO_MUCH_MEMORY_CODE,
    ended_its_reader,
    limited_memory,
    took_too_long,
    watch,
)
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.warm_process import ProcessEnded, WarmProcess, serve

MEMORY_LIMIT: Final = 1280 * 1024**2
"""Bytes of memory for the process; the function has 1,769 MB."""

MAX_SECONDS: Final = 60.0
"""Time for one file; the function has twice as much."""


def count(
    data: bytes,
    file_format: str,
    charset: str | None = None,
    column: str | None = None,
    recognized: Sequence[RecognizedPage] = (),
    limits: AbstractContextManager[None] | None = None,
) -> Census:
    """Count what a file has.

    Args:
        data: The file.
        file_format: Its format.
        charset: The charset that the object in S3 names.
        column: The column with the text of a CSV file whose rows are records.
        recognized: The pages of the file whose text was recognized in their pictures.
        limits: Entered while the file is read.

    Raises:
        MemoryError: The limits do not allow the memory that the file needs.
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    formats.check(data, file_format)
    counts = _counter(file_format, charset, column, recognized)
    try:
        with limits or nullcontext():
            return counts(data)
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file can raise any
        raise UnreadableDocument(explained(error, file_format)) from None


def _counter(
    file_format: str, charset: str | None, column: str | None, recognized: Sequence[RecognizedPage]
) -> Callable[[bytes], Census]:
    """Return what counts files of a format, before time and memory are limited."""
    from ragstack_common.reading.census import (  # noqa: PLC0415 - their libraries take time
        archives,
        binary_sheets,
        light_markup,
        mail,
        open_sheets,
        opendocument,
        pages,
        pdf,
        pictures,
        plain,
        rich_text,
        sheets,
        slides,
        slides97,
        word,
        word97,
    )

    if file_format in formats.IMAGES:
        return lambda data: pictures.count_image(data, file_format, recognized)
    if file_format == "pdf":
        return lambda data: pdf.count(data, recognized)
    if file_format in formats.READ_DIRECTLY:
        return lambda data: pages.count_text(data, file_format, charset, column)
    of_texts = {
        "html": pages.count_html,
        "ipynb": plain.count_ipynb,
        "json": plain.count_json,
        "jsonl": plain.count_json,
        "org": light_markup.count_org,
        "rst": light_markup.count_rst,
        "srt": plain.count_subtitles,
        "tsv": plain.count_tsv,
        "vtt": plain.count_subtitles,
        "xml": plain.count_xml,
    }
    if count_text := of_texts.get(file_format):
        return lambda data: count_text(data, charset)
    counters = {
        "doc": word97.count,
        "docx": word.count,
        "eml": mail.count_eml,
        "epub": archives.count_epub,
        "mht": archives.count_mht,
        "msg": mail.count_msg,
        "odp": opendocument.count_odp,
        "ods": open_sheets.count,
        "odt": opendocument.count_odt,
        "ppt": slides97.count,
        "pptx": slides.count,
        "rtf": rich_text.count,
        "xls": sheets.count_xls,
        "xlsb": binary_sheets.count,
        "xlsx": sheets.count_xlsx,
    }
    return counters[file_format]


class CountingProcess:
    """Counts in a process of its own, with limits of time and memory."""

    def __init__(self) -> None:
        self._process = WarmProcess("ragstack_common.reading.census.counting", [str(MEMORY_LIMIT)])
        self._process.start()

    def count(
        self,
        data: bytes,
        file_format: str,
        charset: str | None = None,
        column: str | None = None,
        recognized: Sequence[RecognizedPage] = (),
    ) -> Census:
        """Count what a file has; raises UnreadableDocument, also if it takes too much time or memory."""
        pages = [page.to_json() for page in recognized]
        head = json.dumps({"format": file_format, "charset": charset, "column": column, "recognized": pages}).encode()
        try:
            answer = self._process.call(head + b"\n" + data, MAX_SECONDS)
        except TimeoutError:
            raise UnreadableDocument(took_too_long(file_format, MAX_SECONDS)) from None
        except ProcessEnded as error:
            raise UnreadableDocument(ended_its_reader(file_format, error.exit_code)) from None
        return _census(json.loads(answer))


def _census(answer: dict[str, Any]) -> Census:
    if "unreadable" in answer:
        raise UnreadableDocument(answer["unreadable"])
    counted = answer["counted"]
    parts = [Part(**each) for each in counted.pop("parts")]
    asides = [Aside(**each) for each in counted.pop("asides")]
    return Census(parts, asides=asides, **counted)


def _answer(memory_limit: int, message: bytes) -> bytes:
    head, _, data = message.partition(b"\n")
    request = json.loads(head)
    try:
        pages = [RecognizedPage.from_json(page) for page in request["recognized"]]
        limits = limited_memory(memory_limit)
        counted = count(data, request["format"], request["charset"], request["column"], pages, limits)
    except UnreadableDocument as error:
        return json.dumps({"unreadable": str(error)}).encode()
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY_CODE)
    return json.dumps({"counted": asdict(counted)}).encode()


def main() -> None:
    """Serve the process that started this one."""
    import pypdfium2  # noqa: F401, PLC0415 - before the memory is limited

    messages, answers, memory_limit = map(int, sys.argv[1:])
    watch(memory_limit)
    serve(messages, answers, partial(_answer, memory_limit))


if __name__ == "__main__":
    main()
