"""Convert files to Markdown in a process of its own, which has limits of time and memory, and no network.

A message is ``{"name": ..., "charset": null} <line end> <file>``. The answer is one of these, followed by a line end
and the parts whose sizes it names::

    {"unreadable": "reason"}
    {"title": ..., "attachments": [names], "recognized": [...], "sizes": [text, attachments]}
    {"pages": [[number, has_picture], ...], "sizes": [...]}    recognize the pictures, and compose the text: the parts
                                                               are the text of each page, and its picture
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, cast

from ragstack_common.reading import formats, markdown
from ragstack_common.reading.conversion import Attachment, ReadText, convert, read_directly
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import (
    TOO_MUCH_MEMORY_CODE,
    ended_its_reader,
    limited_memory,
    took_too_long,
    watch,
)
from ragstack_common.reading.ocr import pages
from ragstack_common.reading.ocr.engines import Setting, recognizer
from ragstack_common.reading.ocr.pages import PagePicture, PageText
from ragstack_common.reading.ocr.recognizer import Recognizer
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.warm_process import ProcessEnded, WarmProcess, serve
from ragstack_common.text.numbered_parts import NumberedPart

MAX_SECONDS: Final = 300.0
"""Time for one file."""

MAX_RECOGNIZED_PAGES: Final = 200
MAX_PICTURE_BYTES: Final = 300 * 1024**2
"""Pages of one file that Textract recognizes, and the bytes of their pictures, which both processes hold. Of 20 real
pages, half have more than 255 kB, and one has 3.4 MB. A local engine stops at the end of the time."""

RECOGNIZED_AT_ONCE: Final = 4
"""Pages that Textract is sent in parallel."""

NO_TEXT: Final = "The file contains no text."

Recognize = Callable[[int, bytes], RecognizedPage]
"""Recognizes a page, given its number and its picture."""


@dataclass(frozen=True)
class Converted:
    """A file as Markdown.

    Attributes:
        attachments: Of a mail.
        recognized: Its pages whose text was recognized in their pictures.
        depends_on_recognition: Whether the text would be another one with another setting of text recognition.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    recognized: tuple[RecognizedPage, ...] = ()
    depends_on_recognition: bool = False


Pages = list[tuple[PageText, bytes | None]]
"""The pages of a file with the text that they have, and the pictures of those that are to be recognized."""


def to_markdown(data: bytes, name: str, charset: str | None, setting: Setting, memory_limit: int) -> Converted | Pages:
    """Convert a file.

    Returns:
        Its text; or its pages, if Textract is to recognize some of them.

    Raises:
        MemoryError: It takes more than *memory_limit* bytes.
        UnreadableDocument: It is damaged, protected, hostile, or of no known format.
    """
    file_format = formats.of_content(data, name)
    formats.check(data, file_format)
    if file_format in formats.READ_DIRECTLY:
        return in_markdown(read_directly(data, file_format, charset))
    if file_format not in (*formats.IMAGES, "pdf"):
        return in_markdown(convert(data, file_format, charset, limited_memory(memory_limit)))
    engine = _engine(setting)
    with limited_memory(memory_limit):
        if setting == "textract":
            return _for_textract(data, file_format)
        found = pages.read_with_recognition(data, file_format, engine, setting)
    return in_markdown(found, depends_on_recognition=True)


@cache
def _engine(setting: Setting) -> Recognizer | None:
    return recognizer(setting)


def _for_textract(data: bytes, file_format: str) -> Pages:
    found: Pages = []
    pictures = size = 0
    for page in pages.pages(data, file_format):
        picture = page.encoded() if isinstance(page, PagePicture) else None
        found.append((PageText(page.number, page.text), picture))
        pictures, size = pictures + (picture is not None), size + len(picture or b"")
        if pictures > MAX_RECOGNIZED_PAGES or size > MAX_PICTURE_BYTES:
            raise UnreadableDocument(
                f"More than {MAX_RECOGNIZED_PAGES} pages are pictures, or they have more than"
                f" {MAX_PICTURE_BYTES // 1024**2} MB: divide the file"
            )
    return found


def in_markdown(found: ReadText, *, depends_on_recognition: bool = False) -> Converted:
    """Return a text with a heading for each page of a PDF, and with the title if it has none of its own.

    Raises:
        UnreadableDocument: There is no text.
    """
    text = found.text
    if "\f" in text:
        blocks = markdown.Blocks()
        for number, page in enumerate(text.removesuffix("\f").split("\f"), 1):
            if page.strip():
                blocks.written(NumberedPart("Page", number).markdown)
                blocks.written(markdown.escaped(page.strip()))
        text = str(blocks)
    if not text.strip():
        raise UnreadableDocument(NO_TEXT)
    if found.title and not text.lstrip().startswith("# "):
        text = f"# {markdown.one_line(found.title)}\n\n{text}"
    return Converted(text, found.attachments, found.recognized, depends_on_recognition)


class ConvertingProcess:
    """Converts in a process of its own.

    Args:
        memory_limit: Bytes of the process.
        setting: What recognizes text in pictures.
        recognize: Recognizes a page with a service that this process calls, and that one does not.
        folders: More folders of packages for the process.
        seconds: Time for one file.
    """

    def __init__(
        self,
        memory_limit: int,
        setting: Setting = "off",
        recognize: Recognize | None = None,
        folders: Sequence[str] = (),
        seconds: float = MAX_SECONDS,
    ) -> None:
        arguments = [str(memory_limit), setting]
        self._process = WarmProcess("ragstack_common.reading.converting", arguments, folders)
        self._recognize, self._seconds = recognize, seconds

    def start(self) -> None:
        """Start the process in the background."""
        self._process.start()

    def convert(self, data: bytes, name: str, charset: str | None = None) -> Converted:
        """Convert a file; raises UnreadableDocument, also if it takes too much time or memory."""
        head = json.dumps({"name": name, "charset": charset}).encode()
        shown = name.rpartition(".")[2][:8]
        try:
            answer = self._process.call(head + b"\n" + data, self._seconds)
        except TimeoutError:
            raise UnreadableDocument(took_too_long(shown, self._seconds)) from None
        except ProcessEnded as error:
            raise UnreadableDocument(ended_its_reader(shown, error.exit_code)) from None
        return self._unpacked(answer, formats.of_content(data, name))

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _unpacked(self, answer: bytes, file_format: str) -> Converted:
        line, _, rest = answer.partition(b"\n")
        head: dict[str, Any] = json.loads(line)
        if "unreadable" in head:
            raise UnreadableDocument(head["unreadable"])
        parts, at = [], 0
        for size in head["sizes"]:
            parts.append(rest[at : at + size])
            at += size
        if "pages" in head:
            found = self._recognized(head["pages"], iter(parts))
            return in_markdown(pages.composed(file_format, found), depends_on_recognition=True)
        text, *files = parts
        return Converted(
            text.decode(),
            tuple(Attachment(name, data) for name, data in zip(head["attachments"], files, strict=True)),
            tuple(RecognizedPage.from_json(page) for page in head["recognized"]),
            head["depends_on_recognition"],
        )

    def _recognized(
        self, listed: Sequence[tuple[int, bool]], parts: Iterator[bytes]
    ) -> list[PageText | RecognizedPage]:
        """Return pages with the text that they have, or that the service recognizes."""
        recognize = self._recognize
        assert recognize is not None, "the setting names a service"

        def read(page: tuple[PageText, bytes | None]) -> PageText | RecognizedPage:
            own, picture = page
            return own if picture is None else pages.fuller(own, recognize(own.number, picture))

        found = [
            (PageText(number, next(parts).decode()), next(parts) if has_picture else None)
            for number, has_picture in listed
        ]
        with ThreadPoolExecutor(RECOGNIZED_AT_ONCE) as threads:
            return [*threads.map(read, found)]


def _packed(found: Converted | Pages) -> bytes:
    if isinstance(found, Converted):
        parts = [found.text.encode(), *(each.data for each in found.attachments)]
        head: dict[str, Any] = {
            "attachments": [each.name for each in found.attachments],
            "recognized": [page.to_json() for page in found.recognized],
            "depends_on_recognition": found.depends_on_recognition,
        }
    else:
        parts = [part for own, picture in found for part in (own.text.encode(), picture) if part is not None]
        head = {"pages": [(own.number, picture is not None) for own, picture in found]}
    head["sizes"] = [len(part) for part in parts]
    return b"".join([json.dumps(head).encode(), b"\n", *parts])


def _answer(memory_limit: int, setting: str, message: bytes) -> bytes:
    head, _, data = message.partition(b"\n")
    request = json.loads(head)
    try:
        return _packed(to_markdown(data, request["name"], request["charset"], cast("Setting", setting), memory_limit))
    except UnreadableDocument as error:
        return json.dumps({"unreadable": str(error)}).encode()
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY_CODE)


def _without_network(event: str, _: tuple[object, ...]) -> None:
    if event.startswith("socket."):
        raise PermissionError("a process that reads files has no network")


def main() -> None:
    """Serve the process that started this one."""
    import pypdfium2  # noqa: F401, PLC0415 - before the memory is limited

    messages, answers, memory_limit, setting = *map(int, sys.argv[1:4]), sys.argv[4]
    sys.addaudithook(_without_network)
    watch(memory_limit)
    serve(messages, answers, partial(_answer, memory_limit, setting))


if __name__ == "__main__":
    main()
