"""What RTF files have: their text from one end of a paragraph or cell to the next, without lists, tables and notes."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from ragstack_common.reading import formats, symbols
from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    DELETED_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    Census,
    Part,
)
from ragstack_common.reading.encodings import known
from ragstack_common.reading.formats import UnreadableDocument

_PIECE: Final = re.compile(
    rb"\\bin(?P<bin>\d{1,9}) ?|\\(?P<word>[A-Za-z]+)(?P<number>-?\d+)? ?|\\'(?P<code>[0-9A-Fa-f]{2})|\\(?P<sign>.)"
    rb"|(?P<open>\{)|(?P<close>\})|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\\Z",
    re.DOTALL,
)
_ENDS: Final = frozenset({
    "par", "sect", "page", "column", "cell", "row", "nestcell", "nestrow", "line", "lbr", "tab", "softpage",
})  # fmt: skip
_NOT_TEXT: Final = frozenset({
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "objdata", "objclass", "objname", "listtable", "revtbl",
    "datafield", "filetbl", "template", "private", "sp", "sn", "sv", "shprslt", "do", "xe", "rxe", "tc", "tcn", "txe",
    "nonesttables", "nonshppict", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc", "ftncn", "aftncn", "listtext", "pntext",
    "fldinst", "annotation", "atnid", "atnauthor", "atntime", "atnicn", "atnref", "atndate", "atnparent",
})  # fmt: skip
_READ_IF_MARKED: Final = frozenset({"shpinst", "nesttableprops", "moMath", "moMathPara", "ud"})
_AROUND: Final = frozenset(kind + which for kind in ("header", "footer") for which in ("", *"lrf"))
_NUMBER_OF_PAGE: Final = re.compile(rb"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_SIGNS: Final = {b"~": " ", b"_": "-", b"\\": "\\", b"{": "{", b"}": "}"}
_WORDS: Final = {"emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019",
                 "ldblquote": "\u201c", "rdblquote": "\u201d", "emspace": " ", "enspace": " "}  # fmt: skip
_PAGES: Final = {
    77: "mac-roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5hkscs", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
_SYMBOLS: Final = "symbols"
_MAX_GROUPS: Final = 10_000


@dataclass(frozen=True)
class _Group:
    kind: str = ""
    """Why it is not read: the name of its destination, or what hides it."""

    hidden: bool = False
    deleted: bool = False
    font: int = -1
    skipped_after_code: int = 1
    is_around: bool = False


@dataclass
class _Text:
    lines: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    waiting: bytearray = field(default_factory=bytearray)
    fonts: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    default: str = "cp1252"

    def decode(self, group: _Group) -> str:
        data, self.waiting = bytes(self.waiting), bytearray()
        charset = self.fonts.get(group.font, self.default)
        if charset == _SYMBOLS:
            return "".join(symbols.character(self.names.get(group.font, ""), code) for code in data)
        return data.decode(charset, "replace")

    def end(self) -> None:
        whole = "".join(self.line).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if whole.strip():
            self.lines.append(whole)
        self.line.clear()


def count(data: bytes) -> Census:
    """List the lines of a document; raises UnreadableDocument."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise UnreadableDocument(formats.DAMAGED.format("rtf", "it does not begin with {\\rtf"))
    return _Count().count(data)


class _Count:
    def __init__(self) -> None:
        self._text = _Text()
        self._group = _Group()
        self._around: list[_Group] = []
        self._found = {"pictures": 0, "comments": 0}
        self._gone: dict[str, list[int]] = {"hidden": [], "deleted": []}
        self._is_marked = False
        self._to_skip = 0
        self._font = -1
        self._field = b""
        self._place = 0

    def count(self, data: bytes) -> Census:
        while self._place < len(data) and (piece := _PIECE.match(data, self._place)):
            self._place = piece.end()
            if piece["bin"]:
                self._place += int(piece["bin"])
            elif piece["text"] or piece["code"]:
                self._add(piece["text"] or bytes([int(piece["code"], 16)]))
            else:
                self._flush()
                if piece["open"]:
                    self._open()
                elif piece["close"]:
                    self._close()
                elif piece["word"] or piece["sign"]:
                    self._follow(piece)
        self._flush()
        self._text.end()
        census = Census([Part("main text", self._text.lines)], "parts")
        census.left_out("pictures", self._found["pictures"], NOT_RECOGNIZED)
        census.left_out("comments", self._found["comments"], COMMENTS_LEFT_OUT)
        census.left_out("deleted passages", len(self._gone["deleted"]), DELETED_LEFT_OUT)
        census.left_out("hidden passages", len(self._gone["hidden"]), HIDDEN_LEFT_OUT)
        return census

    def _open(self) -> None:
        if len(self._around) > _MAX_GROUPS:
            raise RecursionError
        self._around.append(self._group)
        self._to_skip, self._is_marked = 0, False
        if self._group.kind == "upr":
            self._group = replace(self._group, kind="ansi text")

    def _close(self) -> None:
        self._to_skip = 0
        if self._around:
            ended, self._group = self._group, self._around.pop()
            if ended.is_around != self._group.is_around:
                self._text.end()

    def _add(self, data: bytes) -> None:
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        if self._group.kind == "fldinst":
            self._field += data[skipped:]
        self._text.waiting += data[skipped:]

    def _flush(self) -> None:
        group = self._group
        if not self._text.waiting:
            return
        if group.kind == "fonttbl" and not self._text.names.get(self._font):
            self._text.names[self._font] = bytes(self._text.waiting).decode("latin-1").partition(";")[0].strip()
        self._say(self._text.decode(group))

    def _say(self, text: str) -> None:
        group = self._group
        if group.kind:
            return
        if group.deleted or group.hidden:
            places = self._gone["deleted" if group.deleted else "hidden"]
            if text.strip() and (not places or places[-1] != len(self._text.lines)):
                places.append(len(self._text.lines))
            return
        self._text.line.append(text)

    def _follow(self, piece: re.Match[bytes]) -> None:
        if self._to_skip:
            self._to_skip -= 1
            return
        if piece["sign"]:
            if piece["sign"] == b"*":
                self._is_marked = True
            elif piece["sign"] in b"\r\n":
                self._text.end()
            else:
                self._say(_SIGNS.get(piece["sign"], ""))
            return
        word, number = piece["word"].decode(), int(piece["number"]) if piece["number"] else None
        marked, self._is_marked = self._is_marked, False
        if not self._enter(word, marked=marked) and not self._set(word, number):
            self._write(word, number)

    def _enter(self, word: str, *, marked: bool) -> bool:
        group = self._group
        if word == "ud" and marked and self._around:
            self._group = replace(self._around[-1], kind="")
            return True
        if group.kind and group.kind != "upr":
            return bool(marked)
        if word in _NOT_TEXT or word == "upr" or (marked and word not in _READ_IF_MARKED):
            self._group = replace(group, kind=word)
            self._found["pictures"] += word in ("pict", "shppict")
            self._found["comments"] += word == "annotation"
            if word == "fldinst":
                self._field = b""
        elif word == "fldrslt":
            if group.is_around and _NUMBER_OF_PAGE.match(self._field):
                self._group = replace(group, kind="number of the page")
        elif word in _AROUND or word in ("footnote", "shptxt"):
            self._text.end() if word in _AROUND else self._say(" ")
            self._group = replace(group, is_around=group.is_around or word in _AROUND)
        else:
            return False
        return True

    def _set(self, word: str, number: int | None) -> bool:
        group, is_on = self._group, number != 0
        if group.kind == "fonttbl":
            self._describe_font(word, number or 0)
        elif word == "v":
            self._group = replace(group, hidden=is_on)
        elif word == "deleted":
            self._group = replace(group, deleted=is_on)
        elif word == "plain":
            self._group = replace(group, hidden=False, deleted=False, font=self._font_by_default)
        elif word == "f":
            self._group = replace(group, font=number or 0)
        elif word == "deff":
            self._font_by_default = number or 0
            self._group = replace(group, font=number or 0)
        elif word == "uc":
            self._group = replace(group, skipped_after_code=max(0, min(number or 0, 100)))
        elif word in ("mac", "pc", "pca", "ansicpg"):
            page = {"mac": "mac-roman", "pc": "cp437", "pca": "cp850"}.get(word) or known(f"cp{number}")
            self._text.default = page or self._text.default
        else:
            return False
        return True

    _font_by_default = -1

    def _describe_font(self, word: str, number: int) -> None:
        if word == "f":
            self._font = number
        elif word == "fcharset":
            charset = _SYMBOLS if number == 2 else _PAGES.get(number, "cp1252" if number == 0 else "")  # noqa: PLR2004
            if charset:
                self._text.fonts[self._font] = charset
        elif word == "cpg" and (charset := known(f"cp{number}") or ""):
            self._text.fonts[self._font] = charset

    def _write(self, word: str, number: int | None) -> None:
        if word == "u" and number is not None:
            self._to_skip = self._group.skipped_after_code
            code = number & 0xFFFF
            name = self._text.names.get(self._group.font, "")
            is_symbol = self._text.fonts.get(self._group.font) == _SYMBOLS and code >= 0xF000  # noqa: PLR2004
            self._say(symbols.character(name, code) if is_symbol else chr(code))
        elif word in ("super", "sub", "nosupersub", "chftn", "mden", "msup", "msub", "mrad"):
            self._say(" ")
        elif word in _WORDS:
            self._say(_WORDS[word])
        elif word in _ENDS and not self._group.kind:
            self._text.end()
