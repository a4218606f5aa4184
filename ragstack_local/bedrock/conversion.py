"""Binary formats turned into text; runs in the worker process, bounded in memory, and imports what it needs late."""

import io
import os
import resource
import sys
import threading
import time
import warnings
import zipfile
from typing import Final

from ragstack_local.bedrock.formats import UnreadableDocument

MEMORY_LIMIT: Final = 3 * 1024**3
"""Bytes of address space of the worker process, of which its libraries take one at rest."""

LARGEST_UNPACKED: Final = 512 * 1024**2
"""Bytes that the parts of a docx or xlsx file may declare; a 50 MB file with more is no office document."""

PARENT_CHECK_SECONDS: Final = 0.5

_BROKEN: Final = "The .{} file is damaged or not complete and could not be read ({})."
_LOCKED: Final = "The .{} file is protected by a password: remove the protection and upload it again."


def begin() -> None:
    """Prepare a worker process: its memory is bounded (Linux; macOS has no such limit), and it ends with its parent."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    # A parent that was killed enforces no time limit any more.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def convert(data: bytes, file_format: str) -> tuple[str, str | None]:
    """Turn a file into Markdown.

    Returns:
        The text, pages divided by form feeds where the format has them, and the title.

    Raises:
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    if file_format in ("docx", "xlsx"):
        _check_archive(data, file_format)
    # Importing markitdown takes most of a second.
    from markitdown import StreamInfo, converters  # noqa: PLC0415

    converter = {
        "pdf": converters.PdfConverter,
        "docx": converters.DocxConverter,
        "xls": converters.XlsConverter,
        "xlsx": converters.XlsxConverter,
        "html": converters.HtmlConverter,
    }[file_format]()
    try:
        with warnings.catch_warnings(action="ignore"):
            result = converter.convert(
                io.BytesIO(data), StreamInfo(extension=f".{file_format}", charset=_charset(data))
            )
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a parser trips over, it is this file that is at fault
        raise UnreadableDocument(_explained(error, file_format)) from None
    # Plain strings: a title that is a node of the parsed page would take the whole page with it to the other process.
    return str(result.markdown), str(result.title) if result.title else None


def _check_archive(data: bytes, file_format: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(_BROKEN.format(file_format, error)) from None
    if unpacked > LARGEST_UNPACKED:
        raise UnreadableDocument(f"The .{file_format} file would unpack to {unpacked:,} bytes, which is refused.")


def _charset(data: bytes) -> str | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _explained(error: Exception, file_format: str) -> str:
    names = {type(link).__name__ for link in _chain(error)}
    if any("Password" in name or "Encrypt" in name for name in names):
        return _LOCKED.format(file_format)
    detail = str(error).strip().splitlines()
    return _BROKEN.format(file_format, f"{type(error).__name__}: {detail[0]:.120}" if detail else type(error).__name__)


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
