"""What Word 97-2003 files have: the text of each of their parts from one end of a paragraph or cell to the next."""

import re
from typing import Final

from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    DELETED_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    Census,
    Part,
)
from ragstack_common.reading.word.binary import HEADERS, WordFile

_PARTS: Final = {
    "main text": ("body",), "headers and footers": ("headers", "boxes of headers"), "notes": ("footnotes", "endnotes"),
    "text boxes": ("text boxes",),
}  # fmt: skip
_CODE: Final = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x14\x15]*))?\x15")
_NUMBER_OF_PAGE: Final = re.compile(
    "\x13\\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\\b[^\x13\x14\x15]*\x14[^\x13\x14\x15]*\x15", re.IGNORECASE
)
_ENDS: Final = re.compile("[\r\x07\x0b\x0c\x0e]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0f-\x12\x16-\x1d\x1f]")
_COMMENTS: Final = 4
_OF_COMMENT_BYTES: Final = 30
_SEPARATORS: Final = 6


def count(data: bytes) -> Census:
    """List the paragraphs and cells of a document by part; raises UnreadableDocument."""
    file = WordFile(data)
    census = Census([], "parts")
    for name, kinds in _PARTS.items():
        part = Part(name, [text for kind in kinds for text in _texts(file, kind, census)])
        if part.texts:
            census.parts.append(part)
    comments = max(0, len(file.places(_COMMENTS, _OF_COMMENT_BYTES)) - 1)
    census.left_out("comments", comments, COMMENTS_LEFT_OUT)
    return census


def _texts(file: WordFile, kind: str, census: Census) -> list[str]:
    begin, end = file.story(kind)
    if kind == "headers" and len(places := file.places(HEADERS, 0)) > _SEPARATORS:
        begin += places[_SEPARATORS]
    whole = ""
    for _, run, look in file.runs(begin, end):
        if look.is_hidden or look.is_deleted:
            what, why = ("deleted", DELETED_LEFT_OUT) if look.is_deleted else ("hidden", HIDDEN_LEFT_OUT)
            census.left_out(f"{what} passages", int(bool(run.strip())), why)
            whole += "".join(each for each in run if each in "\x13\x14\x15\r\x07")
            continue
        if look.is_special:
            census.left_out("pictures", run.count("\x01") + run.count("\x08"), NOT_RECOGNIZED)
        whole += f" {run} " if look.place else run
    if kind in ("headers", "boxes of headers"):
        whole = _NUMBER_OF_PAGE.sub("", whole)
    found = 1
    while found:
        whole, found = _CODE.subn(lambda code: code[1] or "", whole)
    texts = (_CONTROLS.sub("", text.replace("\x1e", "-")) for text in _ENDS.split(whole))
    return [text for text in texts if text.strip("\x13\x14\x15 \t\n")]
