"""reStructuredText as the rendered document shows it: what docutils reads of it, in Markdown.

Nothing is included from other files, and no raw HTML. Directives and roles of Sphinx, which docutils does not know, are
read by what they usually show.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en

from ragstack_common.reading import lists, markdown
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.markdown import Blocks

_SETTINGS: Final = {
    "_disable_config": True,
    "docinfo_xform": False,
    "doctitle_xform": False,
    "file_insertion_enabled": False,
    "halt_level": 5,
    "input_encoding": "unicode",
    "line_length_limit": 10_000_000,
    "raw_enabled": False,
    "report_level": 3,
    "syntax_highlight": "none",
    "warning_stream": False,
}
_ERROR: Final = 3
"""Level of the messages about what docutils could not read; warnings have a lower one."""

_DIRECTIVE: Final = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([\w:.+-]+)[ \t]?::", re.MULTILINE)
_ROLE: Final = re.compile(r":([A-Za-z][\w:.+-]*):`|`:([A-Za-z][\w:.+-]*):")
_TARGET: Final = re.compile(r"(?s)(.*?)\s*<[^<>]*>\Z")
_NOT_SHOWN: Final = frozenset({
    "automodule", "autoclass", "autofunction", "autosummary", "bibliography", "currentmodule", "default-domain",
    "graphviz", "highlight", "include", "index", "literalinclude", "module", "only", "plantuml", "program", "py:module",
    "py:currentmodule", "sectionauthor", "tabularcolumns", "toctree", "uml", "mermaid",
})  # fmt: skip
_SENTENCES: Final = {
    "deprecated": "Deprecated since version {}", "versionadded": "Added in version {}",
    "versionchanged": "Changed in version {}", "versionremoved": "Removed in version {}", "seealso": "See also",
    "todo": "Todo", "deprecated-removed": "Deprecated since version {}",
}  # fmt: skip
_LEFT_OUT: Final = (
    nodes.comment, nodes.substitution_definition, nodes.pending, nodes.raw,
    nodes.image, nodes.meta, nodes.generated,
)  # fmt: skip
_ENUMERATIONS: Final = {
    "arabic": "decimal", "loweralpha": "lowerLetter", "upperalpha": "upperLetter", "lowerroman": "lowerRoman",
    "upperroman": "upperRoman",
}  # fmt: skip


class _AnyOptions(dict[str, Any]):
    """The options of a directive, and any others: Sphinx has more of them."""

    def __bool__(self) -> bool:
        return True

    def __missing__(self, _: str) -> Any:
        return directives.unchanged


class _OfSphinx(Directive):  # type: ignore[misc]
    """A directive that docutils does not know: its argument, then its content."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = _AnyOptions()
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.name.lower()
        if name in _NOT_SHOWN:
            return []
        argument = self.arguments[0] if self.arguments else ""
        pattern = _SENTENCES.get(name, "")
        if "{}" in pattern:
            version, *rest = argument.split(maxsplit=1) or [""]
            argument = ": ".join([pattern.format(version), *rest]).replace("\n", " ")
        elif pattern:
            argument = f"{pattern}: {argument}"
        whole = nodes.container()
        for line in filter(None, map(str.strip, argument.split("\n"))):
            inline, _ = self.state.inline_text(line, self.lineno)
            whole += nodes.paragraph("", "", *inline)
        self.state.nested_parse(self.content, self.content_offset, whole)
        return [whole]


def _role(_: str, raw: str, text: str, *__: Any, **___: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Return what a role of Sphinx shows: the title of a link, or the last part of a name after a tilde."""
    shown = text.replace("\x00", "")
    if found := _TARGET.fullmatch(shown):
        shown = found[1] or shown.strip("<>")
    elif shown.startswith("~"):
        shown = shown.rpartition(".")[2].lstrip("~")
    return [nodes.inline(raw, shown.removeprefix("!"))], []


def read(data: bytes, charset: str | None = None) -> str:
    """Return the text of a file in Markdown.

    Raises:
        RecursionError: It is nested too deeply.
        UnreadableDocument: It is not text.
    """
    text = decoded(data, charset)
    _know(text)
    document = publish_doctree(text, settings_overrides=dict(_SETTINGS))
    writer = _Writer()
    writer.write_all(document.children, 0)
    return str(writer.blocks)


def _know(text: str) -> None:
    """Register the directives and roles of a file, and options of directives, that docutils does not know."""
    for name in {found.lower() for found in _DIRECTIVE.findall(text)}:
        known, _ = directives.directive(name, en, None) if name in en.directives else (_OfSphinx, [])
        options = _AnyOptions(known.option_spec or {})
        directives.register_directive(name, type(known.__name__, (known,), {"option_spec": options}))
    for name in {(one or other).lower() for one, other in _ROLE.findall(text)} - {*en.roles}:
        roles.register_local_role(name, _role)


class _Writer:
    def __init__(self) -> None:
        self.blocks = Blocks()

    def write_all(self, children: Sequence[nodes.Node], level: int, indent: int = 0) -> None:
        for child in children:
            self._write(child, level, indent)

    def _write(self, node: nodes.Node, level: int, indent: int) -> None:
        if isinstance(node, _LEFT_OUT) or (isinstance(node, nodes.topic) and "contents" in node["classes"]):
            return
        if isinstance(node, nodes.section):
            self.write_all(node.children, level + 1, indent)
        elif isinstance(node, nodes.title) and isinstance(node.parent, nodes.section):
            self.blocks.heading(level, _line(node))
        elif isinstance(node, (nodes.bullet_list, nodes.enumerated_list)):
            self._write_list(node, level, indent)
        elif isinstance(node, nodes.table):
            self._write_table(node)
        elif isinstance(node, (nodes.field, nodes.option_list_item, nodes.footnote, nodes.citation)):
            self._write_labelled(node, level, indent)
        elif not self._write_lines(node, indent):
            if isinstance(node, nodes.Admonition) and not isinstance(node, nodes.admonition):
                self.blocks.paragraph(f"{type(node).__name__.capitalize()}:", indent)
            self.write_all(node.children, level, indent)

    def _write_lines(self, node: nodes.Node, indent: int) -> bool:
        """Write an element that has nothing but text; return whether it is one."""
        if isinstance(node, (nodes.literal_block, nodes.doctest_block, nodes.math_block)):
            classes = [each for each in node.get("classes", []) if each != "code"]
            self.blocks.code(node.astext(), classes[0] if classes else "")
        elif isinstance(node, nodes.system_message):
            if node["level"] >= _ERROR:  # such as a table with crooked lines
                for source in node.findall(nodes.literal_block):
                    self.blocks.code(source.astext())
        elif isinstance(node, nodes.line_block):
            self.blocks.paragraph("\n".join(_lines(node)), indent)
        elif isinstance(node, nodes.Text) or not _has_blocks(node):
            self.blocks.paragraph(_text(node), indent)
        else:
            return False
        return True

    def _write_list(self, node: nodes.Element, level: int, indent: int) -> None:
        number = int(node.get("start", 1))
        for item in node.children:
            marker = "-"
            if isinstance(node, nodes.enumerated_list):
                style = _ENUMERATIONS.get(node.get("enumtype", "arabic"), "decimal")
                marker = f"{node.get('prefix', '')}{lists.label(number, style)}{node.get('suffix', '.')}"
                number += 1
            first, *others = item.children or [nodes.paragraph()]
            if isinstance(first, nodes.paragraph):
                self.blocks.item(marker, _text(first), indent)
            else:
                others = item.children
            self.write_all(others, level, indent + 2)

    def _write_labelled(self, node: nodes.Element, level: int, indent: int) -> None:
        """Write a field, an option or a note: its label before its first paragraph."""
        label, body = node.children[0], node.children[1:]
        if isinstance(node, (nodes.footnote, nodes.citation)):
            shown = f"[{label.astext()}]"
        else:
            shown = _line(label) + ("" if isinstance(node, nodes.option_list_item) else ":")
        if isinstance(node, (nodes.field, nodes.option_list_item)):
            body = body[0].children if body else []
        if body and isinstance(body[0], nodes.paragraph):
            self.blocks.paragraph(f"{shown} {_text(body[0])}", indent)
            body = body[1:]
        else:
            self.blocks.paragraph(shown, indent)
        self.write_all(body, level, indent)

    def _write_table(self, table: nodes.Element) -> None:
        for title in table.findall(nodes.title):
            self.blocks.paragraph(_line(title))
        rows: list[list[str]] = []
        spanning: dict[tuple[int, int], str] = {}
        headers = 0
        for place, row in enumerate(table.findall(nodes.row)):
            headers += isinstance(row.parent, nodes.thead)
            texts: list[str] = []
            for entry in row.children:
                while (place, len(texts)) in spanning:
                    texts.append(spanning[place, len(texts)])
                text = markdown.one_line(_cell(entry))
                for _ in range(entry.get("morecols", 0) + 1):
                    for below in range(1, entry.get("morerows", 0) + 1):
                        spanning[place + below, len(texts)] = text
                    texts.append(text)
            while (place, len(texts)) in spanning:
                texts.append(spanning[place, len(texts)])
            rows.append(texts)
        self.blocks.table(markdown.rectangle(rows, headers or 1))


def _cell(entry: nodes.Element) -> str:
    writer = _Writer()
    writer.write_all(entry.children, 0)
    return str(writer.blocks)


def _has_blocks(node: nodes.Element) -> bool:
    return any(
        isinstance(child, (nodes.Body, nodes.Structural, nodes.Part)) and not isinstance(child, nodes.Inline)
        for child in node.children
    )


def _lines(block: nodes.Element) -> Iterator[str]:
    for child in block.children:
        if isinstance(child, nodes.line_block):
            yield from _lines(child)
        else:
            yield _text(child)


def _line(node: nodes.Node) -> str:
    return markdown.one_line(_text(node))


def _text(node: nodes.Node) -> str:
    """Return the text of a paragraph; its line breaks become spaces."""
    written = ""
    for child in node.children or [node]:
        if isinstance(child, nodes.Text):
            written += child.astext().replace("\n", " ")
        elif isinstance(child, (nodes.superscript, nodes.footnote_reference)):
            written += markdown.raised(child.astext(), written.rstrip())
        elif isinstance(child, nodes.subscript):
            written += markdown.lowered(child.astext())
        elif isinstance(child, nodes.citation_reference):
            written += f"[{child.astext()}]"
        elif not isinstance(child, _LEFT_OUT) and child is not node:
            written += _text(child)
    return written.strip() if isinstance(node, nodes.TextElement) and not isinstance(node, nodes.Inline) else written
