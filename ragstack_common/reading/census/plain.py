"""What files of data, notebooks and subtitles have: their texts, as the files write them one after another."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, Final

from ragstack_common.reading.census import pages
from ragstack_common.reading.census.parts import HIDDEN_LEFT_OUT, NOT_RECOGNIZED, Census, Part
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.plain import markup, notebooks, records

_JSON_PIECE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(-?\d[\d.eE+-]*)', re.DOTALL)
_TIMES: Final = re.compile(r"^[ \t]*[\d:.,]+[ \t]*-->")
_NOTE: Final = re.compile(r"^NOTE\b(?:.*\n)+?(?=\s*$|\Z)|^NOTE[^\n]*\Z", re.MULTILINE)
_STYLE: Final = re.compile(r"^(?:STYLE|REGION)[ \t]*\n(?:.+\n?)*", re.MULTILINE)
_TAG: Final = re.compile(r"<v(?:\.\S+?)?\s([^>]*)>|<[^<>]*>|\{\\[^{}]*\}")
_XML_NAMES: Final = ("{http://www.w3.org/2001/XMLSchema-instance}", "{http://www.w3.org/XML/1998/namespace}")


def count_json(data: bytes, charset: str | None = None) -> Census:
    """List the strings and numbers of JSON in their order; raises UnreadableDocument."""
    texts = []
    for found in _JSON_PIECE.finditer(decoded(data, charset)):
        if found[2]:
            texts.append(found[2])
            continue
        try:
            text = json.loads(found[0], strict=False)
        except ValueError:
            text = found[1]
        texts += _lines(records.without_files(text))
    return Census([Part("main text", texts)], "parts")


def count_ipynb(data: bytes, charset: str | None = None) -> Census:
    """List the lines of each cell of a notebook; raises UnreadableDocument."""
    census = Census([], "cells")
    for number, cell in enumerate(notebooks.cells(notebooks.parsed(data, charset)), start=1):
        part = Part(f"cell {number}", _lines(_text(cell.get("source", cell.get("input")))))
        if cell.get("cell_type") == "markdown":
            part.texts = [re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", line) for line in part.texts]
        attachments = cell.get("attachments")
        census.left_out("pictures", len(attachments) if isinstance(attachments, dict) else 0, NOT_RECOGNIZED)
        for output in cell.get("outputs") or []:
            if isinstance(output, dict):
                part.texts += _printed(output, census)
        census.parts.append(part)
    return census


def _printed(output: dict[str, Any], census: Census) -> list[str]:
    shown = output.get("data", {"text/plain": output.get("text"), "text/html": output.get("html")})
    if not isinstance(shown, dict):
        return []
    census.left_out("pictures", sum(name.startswith("image/") for name in shown), NOT_RECOGNIZED)
    if "<table" in (page := _text(shown.get("text/html"))).lower():
        return [text for part in pages.count_html(page.encode()).parts for text in part.texts]
    if marked := _text(shown.get("text/markdown")):
        return _lines(marked)
    if trace := output.get("traceback"):
        return _lines(notebooks.printed("\n".join(each for each in trace if isinstance(each, str))))
    error = [each for each in (output.get("ename"), output.get("evalue")) if isinstance(each, str)]
    return _lines(notebooks.printed(shown.get("text/plain"))) + error


def count_xml(data: bytes, charset: str | None = None) -> Census:
    """List the texts of the elements of XML, and of data the values of its attributes; raises UnreadableDocument."""
    root = markup.parsed(data, charset)
    with_attributes = not markup.is_document(root)
    texts: list[str] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if with_attributes:
            texts += [value for name, value in element.attrib.items() if not name.startswith(_XML_NAMES)]
        around = [element.text, *(child.tail for child in element)]
        if len(element) and not any(text and text.strip() for text in around):
            waiting.extend(reversed(element))
            continue
        text = "".join(element.itertext())
        texts += _lines(markup.shown(text.strip()) if with_attributes else text)
    census = Census([Part("main text", texts)], "parts")
    census.left_out("comments", data.replace(b"\0", b"").count(b"<!--"), HIDDEN_LEFT_OUT)
    return census


def count_tsv(data: bytes, charset: str | None = None) -> Census:
    """List the cells of a table; raises UnreadableDocument."""
    cells = re.split(r"[\t\r\n]+", decoded(data, charset))
    return Census([Part("main text", [cell for cell in (each.strip().strip('"') for each in cells) if cell])], "parts")


def count_subtitles(data: bytes, charset: str | None = None) -> Census:
    """List the lines of subtitles; raises UnreadableDocument."""
    text = decoded(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    text, notes = _NOTE.subn("", text)
    lines = _STYLE.sub("", text).split("\n")
    first = next((place for place, line in enumerate(lines) if _TIMES.match(line)), len(lines))
    texts = [text for line in _of_cues(lines, first) if (text := unescape(_TAG.sub(_voice, line)).strip())]
    census = Census([Part("main text", texts)], "parts")
    census.left_out("comments", notes, HIDDEN_LEFT_OUT)
    return census


def _of_cues(lines: list[str], first: int) -> Iterator[str]:
    for place in range(first, len(lines)):
        line = lines[place]
        is_before_times = place + 1 < len(lines) and _TIMES.match(lines[place + 1])
        is_name = is_before_times and (line.strip().isdigit() or not lines[place - 1].strip())
        if not _TIMES.match(line) and not is_name:
            yield line


def _voice(found: re.Match[str]) -> str:
    return f" {found[1]} " if found[1] else ""


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
