"""Convert files to text. The libraries are imported when they are needed."""

import io
import re
import sys
import warnings
import zipfile
import zlib
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.pdf import PdfDocument

_HEADER_ROW: Final = re.compile(r"^\|.*\|(?=\n\|(?: *-+ *\|)+$)", re.MULTILINE)
_NO_HEADER: Final = re.compile(r"(?<=\|) Unnamed: \d+ (?=\|)")
"""Name that pandas gives to a column whose first cell is empty."""

_EMPTY: Final = re.compile(r"(?<=\|) NaN (?=\|)")
"""Text that pandas writes for an empty cell."""

_DETECTED_ON: Final = 256 * 1024
"""Bytes from which an encoding is guessed."""


BEGINNING_SEARCHED: Final = 4096
"""Bytes of a part that can contain a declaration, before its first element."""

MAX_TEXT_CHARACTERS: Final = 64 * 1024**2
"""Characters of the text of a file."""

MAX_UNPACKED_BYTES: Final = 512 * 1024**2
"""Unpacked bytes of a docx or xlsx file; a 50 MB file with more is not an office document."""


def plain_text(data: bytes) -> str:
    """Decode a text file, with one form of line ends.

    Raises:
        UnreadableDocument: It is not text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes  # noqa: PLC0415 - rarely needed, and slow to import

        best = from_bytes(data[:_DETECTED_ON]).best()
        text = data.decode(best.encoding if best else "cp1252", errors="replace").removeprefix("\ufeff")
    sample = text[:_DETECTED_ON]
    controls = sum(1 for character in sample if character < " " and character not in "\t\n\r\f\v\x1b")
    if controls > 0.02 * len(sample):
        raise UnreadableDocument("The file's content is not text: check its extension.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def convert(
    data: bytes, file_format: str, limits: AbstractContextManager[None] | None = None
) -> tuple[str, str | None]:
    """Convert a file to Markdown, or a PDF to plain text.

    Args:
        data: The file.
        file_format: Its format.
        limits: Entered once the libraries are loaded, while they read the file.

    Returns:
        The text, with a form feed after each page of a PDF, and the title.

    Raises:
        MemoryError: The limits do not allow the memory that the file needs.
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    limits = limits or nullcontext()
    if file_format in ("docx", "xlsx"):
        _check_archive(data, file_format)
    text, title = _pdf(data, limits) if file_format == "pdf" else _office(data, file_format, limits)
    if len(text) > MAX_TEXT_CHARACTERS:
        raise UnreadableDocument(too_much_text(file_format))
    return _whole(text), _whole(title) if title else None


def too_much_text(file_format: str) -> str:
    """Return the reason why a file with more than ``MAX_TEXT_CHARACTERS`` is not read."""
    return f"The .{file_format} file has more than {MAX_TEXT_CHARACTERS:,} characters of text: split it."


def _pdf(data: bytes, limits: AbstractContextManager[None]) -> tuple[str, None]:
    import pypdfium2  # noqa: F401, PLC0415 - before the time counts

    pages: list[str] = []
    most_characters = MAX_TEXT_CHARACTERS
    with limits, PdfDocument(data) as document:
        for number in range(1, len(document) + 1):
            pages.append(f"{document.text(number)}\f")
            most_characters -= len(pages[-1])
            if most_characters < 0:
                break
    return "".join(pages), None


def _office(data: bytes, file_format: str, limits: AbstractContextManager[None]) -> tuple[str, str | None]:
    if "magika" not in sys.modules and find_spec("magika") is None:
        # markitdown guesses formats with it; the converters do without. The viewer's layer leaves out its 100 MB.
        sys.modules["magika"] = ModuleType("magika")
    # Importing markitdown takes most of a second.
    from markitdown import StreamInfo, converters  # noqa: PLC0415

    converter = {
        "docx": converters.DocxConverter,
        "xls": converters.XlsConverter,
        "xlsx": converters.XlsxConverter,
        "html": converters.HtmlConverter,
    }[file_format]()
    try:
        with limits, warnings.catch_warnings(action="ignore"):
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
