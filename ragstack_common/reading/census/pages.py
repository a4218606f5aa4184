"""What web pages and text files have: the texts of their blocks, or their lines."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from justhtml import JustHTML
from justhtml.dom import Element, Node, Text

from ragstack_common.reading.census.parts import HIDDEN_LEFT_OUT, NOT_RECOGNIZED, Census, Part
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import csv_reader
from ragstack_common.reading.html.pages import BLOCKS, NOT_SHOWN, declared_charset, shown_value
from ragstack_common.reading.html.styles import Styles

_FRONT_MATTER: Final = re.compile(r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n.*?^(?:\1|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE_OR_NO_TEXT: Final = re.compile(
    r"(?P<code>^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z))"
    r"|<!--.*?-->|<(?P<tag>script|style|template)\b[^>]*>.*?</(?P=tag)\s*>",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_APART: Final = frozenset({"br", "rb", "rt", "ruby", "sub", "sup"})
_ALTERNATIVES: Final = frozenset({"noembed", "noframes", "noscript", "object", "template"})
"""What browsers do not show, unlike others."""

_PICTURES: Final = frozenset({"img", "svg", "canvas", "picture"})


def count_html(data: bytes, charset: str | None = None) -> Census:
    """List the texts of the blocks of a page that it does not hide; raises UnreadableDocument."""
    document = JustHTML(decoded(data, charset or declared_charset(data)), sanitize=False)
    lines = _Lines(Styles(document))
    lines.add(document.root)
    census = Census([Part("main text", lines.ended)], "parts")
    census.left_out("pictures", lines.pictures, NOT_RECOGNIZED)
    census.left_out("hidden passages", lines.hidden, HIDDEN_LEFT_OUT)
    return census


@dataclass
class _Lines:
    """The texts of blocks, each as one line."""

    styles: Styles
    ended: list[str] = field(default_factory=list)
    pictures: int = 0
    hidden: int = 0
    _open: list[str] = field(default_factory=list)

    def add(self, root: Node) -> None:
        waiting: list[Node | None] = [root]
        while waiting:
            node = waiting.pop()
            if node is None:
                self._end()
            elif isinstance(node, Text):
                if not isinstance(node.parent, Element) or not self.styles.hides_text(node.parent):
                    self._open.append(node.data or "")
                else:
                    self.hidden += bool((node.data or "").strip())
            elif not isinstance(node, Element):
                waiting.extend(reversed(node.children or ()))
            elif self.styles.hides(node) or node.name in _ALTERNATIVES:
                self.hidden += _has_text(node)
            elif node.name in _PICTURES or node.name not in NOT_SHOWN:
                waiting.extend(self._entered(node))
        self._end()

    def _entered(self, node: Element) -> list[Node | None]:
        """Return what comes next in an element, the last first; None ends a line."""
        self.pictures += node.name in _PICTURES
        if node.name == "canvas":  # what is in it is for browsers without scripts
            return []
        if node.name in ("input", "select", "textarea"):
            self._open.append(shown_value(node))
            return []
        children: list[Node | None] = [*reversed(node.children or ())]
        if node.name in _APART or self.styles.is_block(node, node.name in BLOCKS):
            self._end()
            return [None, *children]
        return children

    def _end(self) -> None:
        if text := "".join(self._open).strip():
            self.ended.append(text)
        self._open.clear()


def _has_text(node: Node) -> bool:
    """Whether there is text in an element, other than code."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Text) and (each.data or "").strip():
            return True
        if not isinstance(each, Element) or each.name not in ("script", "style"):
            waiting += each.children or ()
            content = getattr(each, "template_content", None)
            waiting += content.children or () if content else ()
    return False


def count_text(data: bytes, file_format: str, charset: str | None = None, column: str | None = None) -> Census:
    """List the lines of a text file, without what Markdown does not show; raises UnreadableDocument.

    Of a CSV file whose rows are records, only the *column* with their text is listed; the others are attributes.
    """
    text, comments = decoded(data, charset), 0
    if column is not None:
        return Census([Part("main text", [*_cells(text, column)])], "parts")
    if file_format == "md":
        text = _FRONT_MATTER.sub("", text)
    if file_format == "md" and "<" in text:
        comments = sum(found["code"] is None for found in _CODE_OR_NO_TEXT.finditer(text))
        text = _CODE_OR_NO_TEXT.sub(lambda found: found["code"] or " ", text)
    census = Census([Part("main text", [line for line in text.splitlines() if line.strip()])], "parts")
    census.left_out("comments", comments, HIDDEN_LEFT_OUT)
    return census


def _cells(text: str, column: str) -> Iterator[str]:
    rows = csv_reader(io.StringIO(text, newline=""))
    place = next(rows, []).index(column)
    yield from (row[place] for row in rows if len(row) > place and row[place].strip())
