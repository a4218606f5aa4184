"""Binary formats turned into text; runs in the worker process, bounded in memory, and imports what it needs late."""

import io
import logging
import os
import resource
import sys
import threading
import time
import warnings
import zipfile
import zlib
from typing import Final

from ragstack_local.bedrock.reading.formats import UnreadableDocument

MEMORY_LIMIT: Final = 1536 * 1024**2
"""Bytes of memory of the worker process, of which its libraries take a tenth."""

ADDRESS_SPACE: Final = 3
"""Times the memory that a process may reserve on Linux; its libraries alone reserve one gigabyte."""

TOO_MUCH_MEMORY_CODE: Final = 97
"""Exit code of a process that ended itself; nothing else ends with it."""

BEGINNING_SEARCHED: Final = 4096
"""Bytes of a part in which a declaration would stand, before its first element."""

WATCH_SECONDS: Final = 0.05

LARGEST_TEXT: Final = 64 * 1024**2
"""Characters that a file of 50 MB may turn into."""

LARGEST_UNPACKED: Final = 512 * 1024**2
"""Bytes that the parts of a docx or xlsx file may declare; a 50 MB file with more is no office document."""

_BROKEN: Final = "The .{} file is damaged or not complete and could not be read ({})."
_TOO_DEEP: Final = "The .{} file is nested too deeply to be read: save it again in a simpler form."
_LOCKED: Final = "The .{} file is protected by a password: remove the protection and upload it again."


def begin(memory_limit: int = MEMORY_LIMIT) -> None:
    """Prepare a worker process: its memory is bounded, it ends with its parent, and it says nothing of its own."""
    logging.disable(logging.CRITICAL)
    if sys.platform == "linux":
        # Refuses one huge piece at once, which watching would see too late.
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE * memory_limit, ADDRESS_SPACE * memory_limit))
    threading.Thread(target=_watch, args=(os.getppid(), memory_limit), daemon=True).start()


def _watch(parent: int, memory_limit: int) -> None:
    # A parent that was killed enforces no time limit any more.
    while os.getppid() == parent:
        if _memory_bytes() > memory_limit:
            os._exit(TOO_MUCH_MEMORY_CODE)
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _memory_bytes() -> int:
    """Return the resident memory; where only the peak can be asked for, the peak."""
    if sys.platform == "linux":
        # ru_maxrss would begin with what the parent had.
        with open("/proc/self/statm", "rb") as statistics:  # noqa: PTH123 - twenty times a second
            return int(statistics.read().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
    if len(result.markdown) > LARGEST_TEXT:
        raise UnreadableDocument(
            f"The .{file_format} file turns into {len(result.markdown):,} characters of text; at most"
            f" {LARGEST_TEXT:,} can be indexed: split it."
        )
    # Plain strings: a title that is a node of the parsed page would take the whole page with it to the other process.
    return _whole(str(result.markdown)), _whole(str(result.title)) if result.title else None


def _whole(text: str) -> str:
    """Put pairs of surrogates together, as fonts may name characters, and replace what is half of one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _check_archive(data: bytes, file_format: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            unpacked = sum(entry.file_size for entry in entries)
            declaring = [entry.filename for entry in entries if _declares_entities(archive, entry)]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError) as error:
        raise UnreadableDocument(_BROKEN.format(file_format, error)) from None
    if unpacked > LARGEST_UNPACKED:
        raise UnreadableDocument(f"The .{file_format} file would unpack to {unpacked:,} bytes, which is refused.")
    if declaring:
        raise UnreadableDocument(
            f"The .{file_format} file declares XML entities in {declaring[0]}, which no office program writes and which"
            " is refused: save it again."
        )


def _declares_entities(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    if not entry.filename.endswith((".xml", ".rels")):
        return False
    with archive.open(entry) as part:
        return b"<!DOCTYPE" in part.read(BEGINNING_SEARCHED).replace(b"\x00", b"")


def _charset(data: bytes) -> str | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _explained(error: Exception, file_format: str) -> str:
    if any(isinstance(link, RecursionError) for link in _chain(error)):
        return _TOO_DEEP.format(file_format)
    names = {type(link).__name__ for link in _chain(error)}
    if any("Password" in name or "Encrypt" in name for name in names):
        return _LOCKED.format(file_format)
    detail = (str(error).strip().splitlines() or [""])[0][:120]
    # These two say what is wrong in words; the others may only name a key or a number.
    speaks = detail and isinstance(error, OSError | ValueError)
    kind = type(error).__name__
    return _BROKEN.format(file_format, detail if speaks else f"{kind}: {detail}" if detail else kind)


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
