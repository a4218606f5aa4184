"""A mail as people see it, whichever format it is in: headers, body, attached files."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.formats import FORMATS
from ragstack_common.reading.html import pages
from ragstack_common.reading.markdown import Blocks

SHOWN_HEADERS: Final = ("From", "To", "Cc", "Bcc", "Date")
_MAX_NAME: Final = 120
"""Characters of the name of an attached file; keys in S3 have up to 1,024 bytes."""

_RICHER: Final = 0.7
"""Share of the words of the plain text that a page needs to be read instead: newsletters shorten one of the two."""

_QUOTED: Final = re.compile(r"(?:>[ \t]?)*")
_ADDRESS_OF_PAGE: Final = re.compile(r"\b(?:https?|mailto|cid):\S+|\bwww\.\S+")
_WORD: Final = re.compile(r"[^\W_]+")
_NEEDLESS_QUOTES: Final = re.compile(r'"([^"\\,;:<>@()\[\]]*)"')
_SUFFIXES: Final = {each.media_type: each.suffixes[0] for each in FORMATS.values()}
_MAX_SUFFIX: Final = 10


@dataclass(frozen=True)
class AttachedFile:
    """A file within a mail."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Mail:
    """A mail that was read.

    Attributes:
        headers: Those of ``SHOWN_HEADERS`` that it has, as people read them.
        body: Markdown.
        files: The attached files, with names that are unique and have no folders.
    """

    subject: str
    headers: dict[str, str] = field(repr=False)
    body: str
    files: tuple[AttachedFile, ...] = ()

    @property
    def text(self) -> str:
        """The whole mail in Markdown."""
        blocks = Blocks()
        blocks.heading(1, self.subject)
        lines = [f"{name}: {self.headers[name]}" for name in SHOWN_HEADERS if self.headers.get(name)]
        if self.files:
            lines.append(f"Attachments: {', '.join(file.name for file in self.files)}")
        blocks.paragraph("\n".join(lines))
        blocks.written(self.body)
        return str(blocks)


def named(files: Iterable[tuple[str, str, bytes]]) -> Iterator[AttachedFile]:
    """Yield attached files with names that are safe and unique.

    Args:
        files: The name that the mail says, the media type, and the content of each.
    """
    taken: set[str] = set()
    for said, media_type, data in files:
        suffix = _SUFFIXES.get(media_type, ".txt" if media_type.startswith("text/") else "")
        name = _safe(said) or f"attachment{suffix}"
        stem, suffix = name, ""
        if 1 < len(PurePosixPath(name).suffix) <= _MAX_SUFFIX:
            suffix = PurePosixPath(name).suffix
            stem = name.removesuffix(suffix)
        stem = stem[:_MAX_NAME]
        name, number = f"{stem}{suffix}", 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem} ({number}){suffix}"
        taken.add(name.casefold())
        yield AttachedFile(name, data)


def _safe(name: str) -> str:
    """Return the name of a file without folders and without characters that nobody sees."""
    shown = "".join(each for each in name if unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    return markdown.one_line(re.split(r"[/\\]", shown)[-1]).strip(". ")


def attached_message_name(subject: str) -> str:
    """Return the name of an attached mail."""
    title = re.sub(r"[/\\]", "-", subject).strip() or "message"
    return f"{title}.eml"


def people(value: str) -> str:
    """Return the addresses of a header in one line, without quotation marks that nobody needs."""
    return _NEEDLESS_QUOTES.sub(r"\1", markdown.one_line(value))


def date(value: str) -> str:
    """Return the date of a header in words, such as ``Monday, 5 January 2026, 10:15 +0100``; as it is if invalid."""
    try:
        return shown_date(parsedate_to_datetime(value))
    except (ValueError, TypeError, OverflowError, IndexError):
        return markdown.one_line(value)


def shown_date(moment: datetime) -> str:
    """Return a date in words, with its offset if it has one."""
    return f"{moment:%A}, {moment.day} {moment:%B} {moment.year}, {moment:%H:%M %z}".strip()


def page_or_text(page: str, text: str) -> str:
    """Return a page or the plain text that a mail has as its alternative, whichever has more to read."""
    return page if _words(page) >= _RICHER * _words(text) else text


def _words(text: str) -> int:
    return len(_WORD.findall(_ADDRESS_OF_PAGE.sub("", text)))


def page_text(data: bytes, charset: str | None) -> str:
    """Return what a page in a mail shows, in Markdown."""
    return pages.read(data, charset).text


def plain_text(text: str, *, flowed: bool = False, without_spaces: bool = False) -> str:
    """Return plain text in Markdown, with what it quotes as quotations.

    Args:
        text: The body of a mail.
        flowed: Whether lines that end with a space continue. Source: RFC 3676.
        without_spaces: Whether that space is not part of the text.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    quoted = _flowed(lines, without_spaces=without_spaces) if flowed else _as_written(lines)
    blocks = Blocks()
    open_lines: list[str] = []
    open_depth = 0
    for depth, line in (*quoted, (0, "")):
        if open_lines and (depth != open_depth or not line.strip()):
            prefix = "> " * open_depth
            block = markdown.escaped("\n".join(open_lines))
            blocks.written("\n".join(f"{prefix}{each}" for each in block.split("\n")))
            open_lines = []
        if line.strip():
            open_lines.append(line.rstrip())
        open_depth = depth
    return str(blocks)


def _as_written(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for line in lines:
        marks = _QUOTED.match(line)
        end = marks.end() if marks else 0
        yield line[:end].count(">"), line[end:]


def _flowed(lines: Iterable[str], *, without_spaces: bool) -> Iterator[tuple[int, str]]:
    pieces: list[str] = []
    open_depth = 0
    for line in lines:
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        is_signature = content == "-- "
        if pieces and (open_depth != depth or is_signature):
            yield open_depth, "".join(pieces)
            pieces = []
        open_depth = depth
        if content.endswith(" ") and not is_signature:
            pieces.append(content[:-1] if without_spaces else content)
        else:
            yield depth, "".join([*pieces, content])
            pieces = []
    if pieces:
        yield open_depth, "".join(pieces)
