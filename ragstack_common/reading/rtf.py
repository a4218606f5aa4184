"""The text of RTF files as Word shows it, in Markdown.

Deleted and hidden text, comments and pictures are left out; of a field, its result is read. Headers and footers are
read once, notes follow their section, and lists have the numbers that the file keeps of them.

Source: Rich Text Format Specification 1.9.1, Microsoft, 2008.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ragstack_common.reading import formats, markdown, symbols
from ragstack_common.reading.encodings import known
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.rtf_stories import RowEdges, State, Story

_TOKEN: Final = re.compile(
    rb"\\(?:(?P<word>[A-Za-z]{1,32})(?P<number>-?[0-9]{1,10})? ?|'(?P<hex>[0-9A-Fa-f]{2})|(?P<symbol>[^A-Za-z]))"
    rb"|(?P<brace>[{}])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)
_CHARACTERS: Final[Mapping[str, str]] = {
    "line": "\n", "lbr": "\n", "tab": "\t", "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022",
    "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d", "emspace": " ",
    "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SYMBOLS: Final = {"~": "\u00a0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\t": "\t"}
_BREAKS: Final = frozenset({"par", "sect", "page", "column", "softpage"})
_SKIPPED: Final = frozenset({
    "annotation", "atnauthor", "atndate", "atnicn", "atnid", "atnparent", "atnref", "atntime", "colortbl", "datafield",
    "do", "filetbl", "ftncn", "ftnsep", "ftnsepc", "aftncn", "aftnsep", "aftnsepc", "info", "listtable", "nonesttables",
    "objclass", "objdata", "objname", "pict", "private", "revtbl", "rxe", "shprslt", "sn", "sp", "stylesheet", "sv",
    "tc", "tcn", "template", "txe", "xe", "mmathPict",
})  # fmt: skip
_OPTIONAL_READ: Final = frozenset({"shpinst", "fldinst", "nesttableprops", "moMath", "moMathPara", "ud"})
"""Destinations that are marked as ones to skip if they are unknown, and that are known here."""

_PARTS_OF_FORMULAS: Final = {"mden": "/", "msup": "^", "msub": "_", "mrad": "√"}
"""What is written before a part: 1/2 is not 12."""

_STORIES: Final = frozenset(
    {"footnote", "shptxt"} | {kind + which for kind in ("header", "footer") for which in ("", *"lrf")}
)
_DESTINATIONS: Final = frozenset({"fldinst", "fonttbl", "listtext", "pntext", "upr"})
_MACHINES: Final = {"mac": "mac-roman", "pc": "cp437", "pca": "cp850"}
_PAGE_FIELD: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_CHARSETS: Final[Mapping[int, str]] = {
    0: "cp1252", 77: "mac-roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5hkscs",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251",
    222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
_SYMBOL_CHARSET: Final = 2
_MAX_GROUPS: Final = 10_000
_LEVELS: Final = 9


_CHANGES: Final[Mapping[str, Callable[[int | None], dict[str, Any]]]] = {
    "v": lambda number: {"is_hidden": number != 0},
    "deleted": lambda number: {"is_deleted": number != 0},
    "super": lambda number: {"place": int(number != 0)},
    "sub": lambda number: {"place": 2 * (number != 0)},
    "nosupersub": lambda _: {"place": 0},
    "uc": lambda number: {"unicode_skip": max(0, min(number or 0, 100))},
    "f": lambda number: {"font": number},
    "pard": lambda _: {"level": None, "in_table": False, "table_level": 0, "list_level": 0},
    "outlinelevel": lambda number: {"level": (number or 0) + 1 if number in range(_LEVELS) else None},
    "intbl": lambda number: {"in_table": number != 0},
    "itap": lambda number: {"table_level": max(0, number or 0)},
    "ilvl": lambda number: {"list_level": number if number in range(_LEVELS) else 0},
}
"""What control words change of how text and paragraphs are read, by their number."""

_READ: Final = frozenset({
    "ansicpg", "cell", "cellx", "chftn", "clvmrg", "cpg", "deff", "fcharset", "fldrslt", "nestcell", "nestrow", "plain",
    "row", "sectd",
    "titlepg", "trhdr", "trowd", "u", "ud",
}).union(
    _BREAKS, _CHANGES, _CHARACTERS, _DESTINATIONS, _MACHINES, _OPTIONAL_READ, _PARTS_OF_FORMULAS, _SKIPPED, _STORIES
)  # fmt: skip
"""All control words that are read; most others are about the look of the text."""


def read(data: bytes) -> str:
    """Return the text of a file.

    Raises:
        UnreadableDocument: It is not RTF.
    """
    if not data.lstrip().startswith(b"{\\rtf"):
        raise UnreadableDocument(formats.DAMAGED.format("rtf", "it does not begin with {\\rtf"))
    return Reader().read(data)


@dataclass
class _Font:
    encoding: str | None = None
    name: str = ""
    is_symbol: bool = False


class Reader:
    """A file that is being read."""

    def __init__(self) -> None:
        self._body = Story("body")
        self._state = State(story=self._body)
        self._groups: list[State] = []
        self._fonts: dict[int, _Font] = {}
        self._font = 0
        self._encoding = "cp1252"
        self._default_font: int | None = None
        self._bytes = bytearray()
        self._to_skip = 0
        self._is_optional = False
        self._has_first_page = False
        self._field_code = ""
        self._around: dict[str, dict[str, None]] = {"header": {}, "footer": {}}
        """Blocks of the headers and footers that some page shows."""

        self._of_section: list[tuple[str, str]] = []
        self._count = 0
        self._label = ""
        self._notes: list[str] = []

    def read(self, data: bytes) -> str:
        """Return the text of a file that is RTF."""
        position = 0
        while position < len(data) and (token := _TOKEN.match(data, position)):
            position = token.end()
            if token["text"]:
                self._add_bytes(token["text"])
            elif token["hex"]:
                self._add_bytes(bytes([int(token["hex"], 16)]))
            elif token["brace"]:
                self._flush()
                self._to_skip = 0
                self._open() if token["brace"] == b"{" else self._close()
            elif token["word"] == b"bin":
                position += max(0, int(token["number"] or 0))
            elif token["word"] or token["symbol"]:
                if self._to_skip:
                    self._to_skip -= 1
                    continue
                self._flush()
                if token["word"]:
                    number = int(token["number"]) if token["number"] else None
                    self._control(token["word"].decode(), number)
                else:
                    self._control_symbol(token["symbol"].decode("latin-1"))
        self._flush()
        while self._groups:
            self._close()
        self._body.end(self._state)
        self._write_notes()
        self._end_section()
        return self._whole().encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _whole(self) -> str:
        """Return the body with the headers and footers, each block once."""
        whole = Blocks()
        for block in (*self._around["header"], str(self._body.blocks), *self._around["footer"]):
            whole.written(block)
        return str(whole)

    def _end_section(self) -> None:
        for kind, text in self._of_section:
            if not kind.endswith("f") or self._has_first_page:
                self._around[kind[:6]] |= dict.fromkeys(block for block in text.split("\n\n") if block.strip())
        self._of_section.clear()
        self._has_first_page = False

    def _open(self) -> None:
        if len(self._groups) > _MAX_GROUPS:
            raise RecursionError
        self._groups.append(self._state)
        if self._state.destination == "upr":
            self._state = replace(self._state, destination="skipped")
        self._is_optional = False

    def _close(self) -> None:
        if not self._groups:
            return
        before, self._state = self._state, self._groups.pop()
        story, around = before.story, self._state.story
        if story is None or story is around:
            return
        text = story.end(before)
        if story.kind.startswith(("header", "footer")):
            self._of_section.append((story.kind, text))
        elif story.kind == "footnote":
            if text:
                self._notes.append(f"{markdown.raised(story.label, '')} {text}".strip())
        elif around is not None:  # a text box, which follows its paragraph
            around.paragraph.add(f"\n{text}\n" if text else "")

    def _control(self, word: str, number: int | None) -> None:
        is_optional, self._is_optional = self._is_optional, False
        if word not in _READ and not is_optional:
            return
        if self._enters(word, is_optional=is_optional) or self._state.destination == "skipped":
            return
        if self._state.destination == "fonttbl":
            self._describe_font(word, number or 0)
        elif word in _CHARACTERS or word in _PARTS_OF_FORMULAS:
            self._add(_CHARACTERS.get(word) or _PARTS_OF_FORMULAS[word])
        elif word == "u" and number is not None:
            self._add_code(number & 0xFFFF)
            self._to_skip = self._state.unicode_skip
        elif word == "chftn":
            self._refer()
        elif word == "sectd":
            self._end_section()
        elif word == "titlepg":
            self._has_first_page = True
        elif not self._changes_state(word, number) and self._state.story is not None:
            self._end_or_describe(word, number or 0, self._state.story)

    def _enters(self, word: str, *, is_optional: bool) -> bool:
        """Begin a destination; return whether the word is one."""
        state = self._state
        if word == "ud" and is_optional and self._groups:
            self._state = replace(self._groups[-1], destination="body")
        elif state.destination == "skipped":
            return False
        elif word in _SKIPPED or (is_optional and word not in _OPTIONAL_READ):
            self._state = replace(state, destination="skipped")
        elif word == "nesttableprops":
            self._state = replace(state, describes_nested_row=True)
        elif word in _DESTINATIONS:
            self._state = replace(state, destination=word)
            self._field_code = "" if word == "fldinst" else self._field_code
        elif word == "fldrslt":
            is_around = state.story is not None and state.story.kind.startswith(("header", "footer"))
            if is_around and _PAGE_FIELD.match(self._field_code):
                self._state = replace(state, destination="skipped")
        elif word in _STORIES:
            label, self._label = self._label, ""
            self._state = replace(
                state, story=Story(word, label=label), destination="body", in_table=False, table_level=0
            )
        else:
            return False
        return True

    def _changes_state(self, word: str, number: int | None) -> bool:
        """Change how text and paragraphs are read; return whether the word does that."""
        if change := _CHANGES.get(word):
            self._state = replace(self._state, **change(number))
        elif word == "plain":
            self._state = replace(self._state, is_hidden=False, is_deleted=False, place=0, font=self._default_font)
        elif word == "ansicpg":
            self._encoding = known(f"cp{number}") or self._encoding
        elif word in _MACHINES:
            self._encoding = _MACHINES[word]
        elif word == "deff":
            self._default_font = number
            self._state = replace(self._state, font=number)
        else:
            return False
        return True

    def _end_or_describe(self, word: str, number: int, story: Story) -> None:
        """End a paragraph, a cell or a row, or read what a row says of its cells."""
        if word in _BREAKS:
            state = self._state
            if state.level is not None and not state.depth and story is self._body:
                self._write_notes()
            story.end_paragraph(state)
        elif word == "cell":
            story.end_cell(self._state, 1)
        elif word == "nestcell":
            story.end_cell(self._state, max(2, self._state.depth))
        elif word == "row":
            story.end_row(1)
        elif word == "nestrow":
            story.end_row(max(2, self._state.depth))
        elif word == "trowd":
            story.describe_row(self._state)
        else:
            self._describe_row(word, number, story.described(self._state))

    def _describe_row(self, word: str, number: int, row: RowEdges) -> None:
        if word == "trhdr":
            row.is_header = True
        elif word == "clvmrg":
            row.continues_next = True
        elif word == "cellx":
            row.edges.append(number)
            row.continues.append(row.continues_next)
            row.continues_next = False

    def _describe_font(self, word: str, number: int) -> None:
        if word == "f":
            self._font = number
            self._fonts[number] = _Font()
        elif word == "fcharset" and (font := self._fonts.get(self._font)):
            font.encoding, font.is_symbol = _CHARSETS.get(number), number == _SYMBOL_CHARSET
        elif word == "cpg" and (font := self._fonts.get(self._font)):
            font.encoding = known(f"cp{number}") or font.encoding

    def _control_symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._is_optional = True
        elif symbol in "\r\n" and self._state.destination != "skipped":
            self._control("par", None)
        else:
            self._add(_SYMBOLS.get(symbol, ""))

    def _add_bytes(self, data: bytes) -> None:
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        self._bytes += data[skipped:]

    def _flush(self) -> None:
        """Decode the bytes since the last control word."""
        data, self._bytes = bytes(self._bytes), bytearray()
        if not data:
            return
        font = self._fonts.get(self._state.font if self._state.font is not None else -1)
        if self._state.destination == "fonttbl":
            if described := self._fonts.get(self._font):
                described.name += data.decode("latin-1").partition(";")[0].strip()
        elif font is not None and font.is_symbol:
            self._add("".join(symbols.character(font.name, code) for code in data))
        else:
            self._add(data.decode((font.encoding if font else None) or self._encoding, "replace"))

    def _add_code(self, code: int) -> None:
        font = self._fonts.get(self._state.font if self._state.font is not None else -1)
        if font is not None and font.is_symbol and code >= 0xF000:  # noqa: PLR2004 - of private use
            self._add(symbols.character(font.name, code))
        else:
            self._add(chr(code))

    def _add(self, text: str) -> None:
        state = self._state
        if state.destination == "fldinst":
            self._field_code += text
        elif state.destination in ("listtext", "pntext") and state.story is not None:
            state.story.item += text
        elif state.destination == "body" and state.story is not None and not state.is_hidden and not state.is_deleted:
            state.story.paragraph.add(text, state.place)

    def _refer(self) -> None:
        """Add the number of a note, which follows in a group of its own."""
        story = self._state.story
        if story is not None and story.kind != "footnote":
            self._count += 1
            self._label = str(self._count)
            story.paragraph.add(self._label, 1)

    def _write_notes(self) -> None:
        for note in self._notes:
            self._body.blocks.written(note)
        self._notes.clear()
