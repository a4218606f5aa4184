"""Convert PDF, Office and HTML files to text.

Runs in a worker process with limited memory, and imports the libraries when they are needed.
"""

import io
import os
import re
import signal
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_double
from itertools import accumulate, pairwise
from statistics import median_low
from typing import Any, Final, NamedTuple

from local_bedrock.processes.worker_pool import MEMORY_LIMIT, TOO_MUCH_MEMORY_CODE, limited_memory
from local_bedrock.reading import formats
from local_bedrock.reading.formats import DAMAGED, PROTECTED, UnreadableDocument

PARAGRAPH_GAP: Final = 1.3
"""Distance of two lines above which a paragraph ends, as a multiple of the usual distance on the page."""

SAME_SIZE: Final = 0.1
"""Relative difference of font sizes up to which two lines can belong to one paragraph."""

_LINE_END: Final = "\r\n"
_UNKNOWN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for glyphs without a character."""

_HYPHENATION: Final = re.compile(f"(?<=[^\\W\\d_]){_UNKNOWN}(?=[^\\W\\d_])")
_HEADER_ROW: Final = re.compile(r"^\|.*\|(?=\n\|(?: *-+ *\|)+$)", re.MULTILINE)
_NO_HEADER: Final = re.compile(r"(?<=\|) Unnamed: \d+ (?=\|)")
"""Name that pandas gives to a column whose first cell is empty."""

_EMPTY: Final = re.compile(r"(?<=\|) NaN (?=\|)")
"""Text that pandas writes for an empty cell."""

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f]")


def pdf_pages(data: bytes, most_characters: int) -> list[str]:
    """Return the text of each page, with an empty line between paragraphs.

    Args:
        data: The file.
        most_characters: Reading ends with the page that exceeds this limit.

    Raises:
        UnreadableDocument: The file is damaged or protected.
    """
    # The library takes a tenth of a second to load.
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise UnreadableDocument(PROTECTED.format("pdf")) from None
        raise UnreadableDocument(DAMAGED.format("pdf", "no PDF structure was found")) from None
    found: list[str] = []
    with document:
        for number in range(1, len(document) + 1):
            try:
                page = document[number - 1]
                text = page.get_textpage()
            except pypdfium2.PdfiumError:
                raise UnreadableDocument(DAMAGED.format("pdf", f"page {number}")) from None
            found.append(_cleaned(_paragraphs(pypdfium2.raw, text)))
            text.close()
            page.close()
            most_characters -= len(found[-1])
            if most_characters < 0:
                break
    return found


def _paragraphs(raw: Any, page: Any) -> str:
    text: str = page.get_text_range()
    lines = text.split(_LINE_END)
    if len(text) != page.count_chars():
        # With characters beyond 16 bits or expanded ligatures, offsets don't identify positions on the page.
        return "\n".join(lines)
    offsets = accumulate((len(line) + len(_LINE_END) for line in lines[:-1]), initial=0)
    places = [_place(raw, page, offset, line) for offset, line in zip(offsets, lines, strict=True)]
    # PDFium joins hyphenated lines, so a line can end lower than it begins.
    gaps = [before.end - after.start for before, after in pairwise(places)]
    usual = median_low([gap for gap in gaps if gap > 0] or [0.0])
    joined = lines[:1]
    for gap, (before, after), line in zip(gaps, pairwise(places), lines[1:], strict=True):
        ends = gap > PARAGRAPH_GAP * usual or abs(before.font_size - after.font_size) > SAME_SIZE * before.font_size
        joined.append("\n" + line if ends else line)
    return "\n".join(joined)


class _Place(NamedTuple):
    """The heights of the baseline at the start and end of a line, and its font size."""

    start: float
    end: float
    font_size: float


def _place(raw: Any, page: Any, offset: int, line: str) -> _Place:
    x, start, end = c_double(), c_double(), c_double()
    raw.FPDFText_GetCharOrigin(page, offset, byref(x), byref(start))
    raw.FPDFText_GetCharOrigin(page, offset + max(0, len(line.rstrip()) - 1), byref(x), byref(end))
    return _Place(start.value, end.value, raw.FPDFText_GetFontSize(page, offset))


def _cleaned(text: str) -> str:
    joined = _HYPHENATION.sub("", text).replace(_UNKNOWN, "-")
    return _CONTROLS.sub(" ", joined)


BEGINNING_SEARCHED: Final = 4096
"""Bytes of a part that can contain a declaration, before its first element."""

MAX_TEXT_CHARACTERS: Final = 64 * 1024**2
"""Characters of the text of a file."""

MAX_UNPACKED_BYTES: Final = 512 * 1024**2
"""Unpacked bytes of a docx or xlsx file; a 50 MB file with more is not an office document."""


def convert(
    data: bytes, file_format: str, memory_limit: int = MEMORY_LIMIT, processor_seconds: float = 0.0
) -> tuple[str, str | None]:
    """Convert a file to Markdown, or a PDF to plain text.

    A process that runs out of memory ends with ``TOO_MUCH_MEMORY_CODE``, because it can't process another file.

    Args:
        data: The file.
        file_format: Its format.
        memory_limit: Bytes of the process.
        processor_seconds: Maximum processor time, without that for loading libraries; SIGPROF then ends the process.
            0 for no limit.

    Returns:
        The text, with a form feed after each page of a PDF, and the title.

    Raises:
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    if file_format in ("docx", "xlsx"):
        _check_archive(data, file_format)
    try:
        if file_format == "pdf":
            text, title = _pdf(data, memory_limit, processor_seconds)
        else:
            text, title = _office(data, file_format, memory_limit, processor_seconds)
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY_CODE)
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UnreadableDocument(
            f"The .{file_format} file has more than {MAX_TEXT_CHARACTERS:,} characters of text: split it."
        )
    return _whole(text), _whole(title) if title else None


@contextmanager
def _limited_time(processor_seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, processor_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _pdf(data: bytes, memory_limit: int, processor_seconds: float) -> tuple[str, None]:
    import pypdfium2  # noqa: F401, PLC0415 - before the time counts

    with limited_memory(memory_limit), _limited_time(processor_seconds):
        return "".join(f"{page}\f" for page in pdf_pages(data, MAX_TEXT_CHARACTERS)), None


def _office(data: bytes, file_format: str, memory_limit: int, processor_seconds: float) -> tuple[str, str | None]:
    # Importing markitdown takes most of a second.
    from markitdown import StreamInfo, converters  # noqa: PLC0415

    converter = {
        "docx": converters.DocxConverter,
        "xls": converters.XlsConverter,
        "xlsx": converters.XlsxConverter,
        "html": converters.HtmlConverter,
    }[file_format]()
    try:
        with (
            limited_memory(memory_limit),
            _limited_time(processor_seconds),
            warnings.catch_warnings(action="ignore"),
        ):
            charset = "utf-8" if _is_utf8(data) else None
            stream = StreamInfo(extension=f".{file_format}", charset=charset)
            # Of links, only the text: addresses are noise for searches and quotations.
            result = converter.convert(io.BytesIO(data), stream, strip=["a"])
    except Exception as error:
        errors = _chain(error)
        # libxml2 reports it in a syntax error.
        if any(isinstance(link, MemoryError) for link in errors) or "Memory allocation failed" in str(error):
            raise MemoryError from error
        raise UnreadableDocument(_explained(errors, file_format)) from None
    # Plain strings: pickling a title that is a node would pickle the whole parsed page.
    text = str(result.markdown)
    if file_format in formats.WITH_SHEETS:
        text = _EMPTY.sub(" ", _HEADER_ROW.sub(lambda row: _NO_HEADER.sub(" ", row[0]), text))
    return text, str(result.title) if result.title else None


def _whole(text: str) -> str:
    """Combine pairs of surrogates, and replace single ones."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _check_archive(data: bytes, file_format: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            unpacked = sum(entry.file_size for entry in entries)
            declaring = [entry.filename for entry in entries if _declares_entities(archive, entry)]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError) as error:
        raise UnreadableDocument(formats.DAMAGED.format(file_format, error)) from None
    if unpacked > MAX_UNPACKED_BYTES:
        raise UnreadableDocument(f"The .{file_format} file unpacks to {unpacked:,} bytes, which is too much.")
    if declaring:
        raise UnreadableDocument(
            f"The .{file_format} file declares XML entities in {declaring[0]}, which is not allowed: save it again."
        )


def _declares_entities(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    if not entry.filename.endswith((".xml", ".rels")):
        return False
    with archive.open(entry) as part:
        return b"<!DOCTYPE" in part.read(BEGINNING_SEARCHED).replace(b"\x00", b"")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _explained(errors: list[BaseException], file_format: str) -> str:
    if any(isinstance(error, RecursionError) for error in errors):
        return f"The .{file_format} file is nested too deeply: save it again in a simpler form."
    if any("Password" in type(error).__name__ or "Encrypt" in type(error).__name__ for error in errors):
        return formats.PROTECTED.format(file_format)
    message = f"{type(errors[0]).__name__}: {errors[0]}".splitlines()[0]
    return formats.DAMAGED.format(file_format, message[:120])


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
