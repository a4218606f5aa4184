"""Convert files to text. Formats that can be hostile are read in worker processes with limited time and memory."""

import signal
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from pebble import ProcessExpired

from local_bedrock.processes.worker_pool import WorkerPool
from local_bedrock.reading import conversion
from ragstack_common.reading import formats
from ragstack_common.reading.conversion import ReadText, read_directly
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import MEMORY_LIMIT, ended_its_reader, took_too_long

TIME_LIMIT_SECONDS: Final = 120.0
NO_TEXT: Final = "The file contains no text."
NO_TEXT_IN_PDF: Final = "The file contains no text: pages that are images need text recognition (OCR) first."


@dataclass(frozen=True)
class ParsedDocument:
    """The text of a document.

    Attributes:
        text: Plain text or Markdown.
        title: None if the document has no title.
        page_starts: Offset of each page; empty if the format has no pages.
    """

    text: str
    title: str | None = None
    page_starts: tuple[int, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """Return the page of an offset, from 1; None if the format has no pages."""
        return bisect_right(self.page_starts, offset) if self.page_starts else None


class Parser:
    """Parses documents, in any thread; the worker processes start with the first document that needs them.

    Args:
        processes: Documents converted concurrently.
        time_limit_seconds: For one document.
        memory_limit: Bytes of a worker process, including its libraries.
    """

    def __init__(
        self,
        *,
        processes: int = 1,
        time_limit_seconds: float = TIME_LIMIT_SECONDS,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._pool = WorkerPool(processes, memory_limit)
        self._memory_limit = memory_limit
        self._time_limit_seconds = time_limit_seconds

    def parse(
        self, data: bytes, file_format: str, charset: str | None = None, *, light: bool = False
    ) -> ParsedDocument:
        """Read a file.

        Args:
            data: The file.
            file_format: Its format.
            charset: The charset that the object in S3 names.
            light: Whether the document must not take long.

        Raises:
            NotLight: It takes longer than a light document.
            PoolClosed: The parser was closed.
            UnreadableDocument: Empty, too large, damaged, protected, too expensive, or without text.
        """
        formats.check(data, file_format)
        if file_format in formats.READ_DIRECTLY:
            parsed = _parsed(read_directly(data, file_format, charset))
        else:
            found = self._converted(data, file_format, charset, light=light)
            parsed = _paged(found) if file_format == "pdf" else _parsed(found)
        if not parsed.text.strip():
            raise UnreadableDocument(NO_TEXT_IN_PDF if file_format == "pdf" else NO_TEXT)
        return parsed

    def close(self) -> None:
        """End the worker processes; conversions in progress fail."""
        self._pool.close()

    def _converted(self, data: bytes, file_format: str, charset: str | None, *, light: bool) -> ReadText:
        arguments = (data, file_format, charset, self._memory_limit, formats.LIGHT_SECONDS if light else 0.0)
        try:
            return self._pool.call(conversion.convert, *arguments, timeout=self._time_limit_seconds)
        except TimeoutError:
            raise UnreadableDocument(took_too_long(file_format, self._time_limit_seconds)) from None
        except ProcessExpired as error:
            if light and error.exitcode == -signal.SIGPROF:
                raise formats.NotLight from None
            raise UnreadableDocument(ended_its_reader(file_format, error.exitcode)) from None


def _parsed(found: ReadText) -> ParsedDocument:
    return ParsedDocument(found.text, found.title)


def _paged(found: ReadText) -> ParsedDocument:
    text, title = found.text, found.title
    if "\f" not in text:
        return _parsed(found)
    pages = text.removesuffix("\f").split("\f")
    starts, offset = [], 0
    for page in pages:
        starts.append(offset)
        offset += len(page) + 1
    return ParsedDocument("\n".join(pages), title, tuple(starts))
