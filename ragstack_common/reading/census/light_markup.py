"""What reStructuredText and Org files have: their lines, without what only their programs read."""

import re
from collections.abc import Iterator
from typing import Final

from ragstack_common.reading.census.parts import HIDDEN_LEFT_OUT, NOT_RECOGNIZED, Census, Part
from ragstack_common.reading.encodings import decoded

_EXPLICIT: Final = re.compile(r"^(\s*)(?:[*+-]\s+)?\.\.(?:\s+(.*))?$")
_DIRECTIVE: Final = re.compile(r"(?:\|[^|]+\|\s+)?([\w:.+-]+)\s?::\s*(.*)")
_OPTION: Final = re.compile(r"\s*:[\w -]+:(?:\s|$)")
_ADORNMENT: Final = re.compile(r"\s*([^\w\s])\1+\s*$|[\s+=|-]+$")
_BETWEEN_CELLS: Final = re.compile(r"\s{2,}|\|")
_ROLE: Final = re.compile(r":[\w:.+-]+:(?=`)|(?<=`):[\w:.+-]+:")
_ADDRESS: Final = re.compile(r"\s*<[^<>`]*>(?=`)")
_LAST_OF_NAME: Final = re.compile(r"`~[\w.]*?(\w+)`")
_REFERENCE: Final = re.compile(r"\|[^|\s][^|]*\|_{0,2}")
_PICTURES: Final = frozenset({"image", "figure"})
_WITHOUT_ARGUMENT: Final = frozenset(
    {"code", "code-block", "sourcecode", "figure", "highlight", "class", "role", "container"}
)
_NOT_READ: Final = frozenset({
    "automodule", "autoclass", "autofunction", "autosummary", "bibliography", "contents", "currentmodule",
    "default-domain", "default-role", "graphviz", "highlight", "include", "index", "literalinclude", "module", "only",
    "image", "mermaid", "meta", "plantuml", "program", "py:currentmodule", "py:module", "raw", "replace", "role",
    "sectionauthor", "sectnum", "tabularcolumns", "target-notes", "toctree", "title", "uml", "unicode", "date",
})  # fmt: skip

_LINES: Final = re.IGNORECASE | re.MULTILINE
_ORG_DRAWER: Final = re.compile(r"^[ \t]*:(?!end:)[\w-]+:[ \t]*\n(?:.*\n){0,1000}?[ \t]*:end:[ \t]*$", _LINES)
_ORG_BLOCK: Final = re.compile(r"^[ \t]*#\+begin_(comment|export)\b.*\n(?:.*\n){0,1000}?[ \t]*#\+end_\1.*$", _LINES)
_ORG_LINE: Final = re.compile(
    r"^[ \t]*(?:#(?:[ \t].*)?|#\+(?!title|subtitle|author|date|caption)\w+.*|\|-[-+|: \t]*"
    r"|(?:(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[][^>\]]*[>\]][ \t]*)+)$",
    _LINES,
)
_ORG_LINK: Final = re.compile(r"\[\[([^\[\]]*)\](?:\[(.*?)\])?\]")
_ORG_PICTURE: Final = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|tiff?|bmp)$", re.IGNORECASE)


def count_rst(data: bytes, charset: str | None = None) -> Census:
    """List the lines of a file of reStructuredText; raises UnreadableDocument."""
    census = Census([Part("main text")], "parts")
    for line in _of_rst(decoded(data, charset).expandtabs().splitlines(), census):
        line = _LAST_OF_NAME.sub(r"\1", _ADDRESS.sub("", _ROLE.sub("", line)))  # noqa: PLW2901 - without marks
        census.parts[0].texts += _cells(_REFERENCE.sub(" ", line) if not line.strip().startswith("|") else line)
    return census


def _cells(line: str) -> Iterator[str]:
    return (cell for cell in _BETWEEN_CELLS.split(line) if cell.strip())


def _of_rst(lines: list[str], census: Census) -> Iterator[str]:
    left_out: int | None = None
    after_directive = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if left_out is not None and (not line.strip() or indent > left_out):
            continue
        left_out = None
        if after_directive and (_OPTION.match(line) or not line.strip()):
            after_directive = bool(line.strip())
            continue
        after_directive = False
        explicit = _EXPLICIT.match(line)
        if explicit is None:
            if line.strip() and not _ADORNMENT.match(line) and not re.match(r"\s*__ ", line):
                yield line
            continue
        said = explicit[2] or ""
        directive = _DIRECTIVE.match(said)
        if directive is None:
            is_note = re.match(r"\[[^\]]+\]\s", said)
            if is_note:
                yield said
                continue
            census.left_out("comments", int(bool(said) and not said.startswith("_")), HIDDEN_LEFT_OUT)
            left_out = indent
            continue
        name = directive[1].lower()
        census.left_out("pictures", int(name in _PICTURES), NOT_RECOGNIZED)
        if name in _NOT_READ:
            left_out = indent
            continue
        after_directive = True
        if name not in _WITHOUT_ARGUMENT:
            yield directive[2]


def count_org(data: bytes, charset: str | None = None) -> Census:
    """List the lines of an Org file; raises UnreadableDocument."""
    text = decoded(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    text = _ORG_BLOCK.sub("", _ORG_DRAWER.sub("", text))
    pictures = 0

    def shown(link: re.Match[str]) -> str:
        nonlocal pictures
        target = link[2] if link[2] is not None else link[1]
        pictures += bool(_ORG_PICTURE.search(target))
        return "" if _ORG_PICTURE.search(target) else re.sub(r"^(?:file|id|mailto|attachment):", "", target)

    lines = [*_exported(_ORG_LINK.sub(shown, _ORG_LINE.sub("", text)).split("\n"))]
    census = Census([Part("main text", [cell for line in lines for cell in _cells(_clean(line))])], "parts")
    census.left_out("pictures", pictures, NOT_RECOGNIZED)
    return census


def _clean(line: str) -> str:
    line = re.sub(r"^\s*#\+(?:begin|end)_.*$", "", line, flags=re.IGNORECASE)
    line = re.sub(r"^\s*#\+(?:title|subtitle|author|date|caption)(?:\[.*?\])?:", "", line, flags=re.IGNORECASE)
    return re.sub(r"^(\*+\s.*?)\[#[A-Z0-9]\]", r"\1", re.sub(r"\[fn:([\w-]*):?", r"[\1 ", line))


def _exported(lines: list[str]) -> Iterator[str]:
    depth = 0
    for line in lines:
        if found := re.match(r"(\*+)\s", line):
            level = len(found[1])
            if not depth or level <= depth:
                is_gone = re.search(r":noexport:\S*\s*$", line, re.IGNORECASE) or re.match(r"\*+\s+COMMENT\b", line)
                depth = level if is_gone else 0
        if not depth:
            yield line
