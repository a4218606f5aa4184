"""Jupyter notebooks: their text, code, and what the code printed.

Sources: nbformat 4 and 3.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ragstack_common.reading import formats, markdown
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.html import pages
from ragstack_common.reading.markdown import Blocks

_COLOURS: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PICTURE: Final = re.compile(r"!\[([^\]]*)\]\((?:attachment:|data:)[^)]*\)")
_TABLE: Final = re.compile(r"<table\b", re.IGNORECASE)
_BACKSPACE: Final = re.compile("[^\x08\n]\x08")


def read(data: bytes, charset: str | None = None) -> tuple[str, str | None]:
    """Return the text of a notebook in Markdown, and its title if it has one.

    Raises:
        UnreadableDocument: It is damaged.
    """
    notebook = parsed(data, charset)
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    language = _language(metadata)
    blocks = Blocks()
    for cell in cells(notebook):
        _write(cell, language, blocks)
    title = metadata.get("title")
    return str(blocks), title if isinstance(title, str) and title.strip() else None


def parsed(data: bytes, charset: str | None = None) -> dict[str, Any]:
    """Return a notebook as it is stored; raises UnreadableDocument."""
    try:
        notebook = json.loads(decoded(data, charset))
    except ValueError as error:
        raise UnreadableDocument(formats.DAMAGED.format("ipynb", error)) from None
    if not isinstance(notebook, dict):
        raise UnreadableDocument(formats.DAMAGED.format("ipynb", "it has no cells"))
    return notebook


def cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells of a notebook; version 3 has them in worksheets."""
    for holder in (notebook, *_dicts(notebook.get("worksheets"))):
        yield from _dicts(holder.get("cells"))


def joined(value: object) -> str:
    """Return a text, which may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def printed(value: object) -> str:
    """Return what was printed, without colours and what a progress bar wrote over itself."""
    text = _BACKSPACE.sub("", _COLOURS.sub("", joined(value))).replace("\r\n", "\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _language(metadata: dict[str, Any]) -> str:
    for holder, name in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(holder)
        if isinstance(found, dict) and isinstance(found.get(name), str):
            return markdown.one_line(found[name]).replace("`", "")
    return ""


def _write(cell: dict[str, Any], language: str, blocks: Blocks) -> None:
    kind = cell.get("cell_type")
    source = joined(cell.get("source", cell.get("input")))
    if kind == "heading":
        level = cell.get("level")
        blocks.heading(level if isinstance(level, int) and level > 0 else 1, source)
    elif kind == "markdown":
        blocks.written(_PICTURE.sub(r"\1", source).strip())
    elif kind == "code":
        blocks.code(source, language)
        for output in _dicts(cell.get("outputs")):
            _write_output(output, blocks)
    else:
        blocks.code(source)


def _write_output(output: dict[str, Any], blocks: Blocks) -> None:
    kind = output.get("output_type")
    if kind == "stream":
        blocks.code(printed(output.get("text")))
    elif kind in ("error", "pyerr"):
        trace = output.get("traceback")
        lines = [each for each in trace if isinstance(each, str)] if isinstance(trace, list) else []
        blocks.code(printed("\n".join(lines)) or f"{joined(output.get('ename'))}: {joined(output.get('evalue'))}")
    else:
        shown = output.get("data")
        shown = (
            shown if isinstance(shown, dict) else {"text/plain": output.get("text"), "text/html": output.get("html")}
        )
        page = joined(shown.get("text/html"))
        if _TABLE.search(page):
            blocks.written(pages.read(page.encode("utf-8", "replace"), "utf-8").text)
        elif marked := joined(shown.get("text/markdown")):
            blocks.written(_PICTURE.sub(r"\1", marked).strip())
        else:
            blocks.code(printed(shown.get("text/plain")))
