"""Data, notebooks, XML and subtitles whose words are in every place that the formats have for them."""

import json
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks

if TYPE_CHECKING:
    from collections.abc import Callable

_DEEPEST: Final = 3


@st.composite
def json_files(draw: st.DrawFn) -> MarkedFile:
    """JSON and JSON Lines of any structure."""
    marks = Marks()

    def value(depth: int) -> Any:
        kinds: list[Callable[[], Any]] = [
            marks.show,
            marks.number,
            lambda: f"{marks.show()} <b>\n{marks.show()}",
            lambda: draw(st.sampled_from((None, True, "", [], {}))),
        ]
        if depth < _DEEPEST:
            kinds += [
                lambda: {marks.show(): value(depth + 1) for _ in range(draw(st.integers(0, 3)))},
                lambda: [value(depth + 1) for _ in range(draw(st.integers(0, 3)))],
                lambda: records(depth + 1),
            ]
        kind: Callable[[], Any] = draw(st.sampled_from(kinds))
        return kind()

    def records(depth: int) -> list[Any]:
        names = [marks.show() for _ in range(draw(st.integers(1, 3)))]
        return [{name: value(depth + 1) for name in names} for _ in range(draw(st.integers(1, 3)))]

    whole = {marks.show(): value(0), marks.show(): value(0)}
    if draw(st.booleans()):
        lines = [whole, *({marks.show(): marks.show(), marks.show(): value(1)} for _ in range(2))]
        return MarkedFile("\n".join(json.dumps(each) for each in lines).encode(), "jsonl", marks)
    ascii_only = draw(st.booleans())
    written = json.dumps(whole, indent=draw(st.sampled_from((None, 2))), ensure_ascii=ascii_only)
    return MarkedFile(written.encode(draw(st.sampled_from(("utf-8", "utf-16")))), "json", marks)


@st.composite
def notebooks(draw: st.DrawFn) -> MarkedFile:
    """Notebooks with cells and outputs of each kind."""
    marks = Marks()
    cells: list[dict[str, Any]] = []

    def picture() -> dict[str, Any]:
        return {
            "output_type": "display_data",
            "data": {"image/png": marks.hide("pictures"), "text/plain": marks.show()},
        }

    outputs: list[Callable[[], dict[str, Any]]] = [
        lambda: {"output_type": "stream", "text": [f"\x1b[1m{marks.show()}\x1b[0m\n", marks.show()]},
        lambda: {"output_type": "execute_result", "data": {"text/plain": marks.show()}},
        lambda: {
            "output_type": "execute_result",
            "data": {
                "text/plain": marks.hide(),
                "text/html": f"<table><tr><td>{marks.show()}<td>b<tr><td>c<td>{marks.show()}</table>",
            },
        },
        lambda: {"output_type": "error", "ename": "E", "evalue": "v", "traceback": [marks.show()]},
        picture,
    ]
    for number in range(1, draw(st.integers(2, 4)) + 1):
        marks.part = f"cell {number}"
        kind = draw(st.sampled_from(("markdown", "code", "raw")))
        cell: dict[str, Any] = {"cell_type": kind, "source": [f"# {marks.show()}\n", marks.show()]}
        if kind == "code":
            cell["outputs"] = [draw(st.sampled_from(outputs))() for _ in range(draw(st.integers(0, 3)))]
        cells.append(cell)
    written = {"nbformat": 4, "metadata": {"x": marks.hide()}, "cells": cells}
    return MarkedFile(json.dumps(written).encode(), "ipynb", marks)


@st.composite
def xml_files(draw: st.DrawFn) -> MarkedFile:
    """XML with data, and with text for people."""
    marks = Marks()
    is_document = draw(st.booleans())

    def element(depth: int) -> str:
        name = draw(st.sampled_from(("a", "b", "c")))
        attributes = ""
        if not is_document and draw(st.booleans()):
            attributes = f" at={quoteattr(marks.show() + ' &')}"
        if depth < _DEEPEST and draw(st.booleans()):
            inner = "".join(element(depth + 1) for _ in range(draw(st.integers(1, 3))))
            return f"<{name}{attributes}>{inner}</{name}>"
        return f"<{name}{attributes}>{escape(marks.show() + ' & ö')}</{name}>"

    def paragraph() -> str:
        return f"<p>{marks.show()} and <i>{marks.show()}</i> {marks.show()}</p>"

    def section(depth: int) -> str:
        inner = "".join(paragraph() for _ in range(draw(st.integers(1, 3))))
        if depth < _DEEPEST and draw(st.booleans()):
            inner += section(depth + 1)
        return f"<section id='{marks.hide()}'><title>{marks.show()}</title>{inner}</section>"

    body = section(0) if is_document else "".join(element(0) for _ in range(draw(st.integers(1, 4))))
    comment = f"<!-- {marks.hide('comments')} -->" if draw(st.booleans()) else ""
    encoding = draw(st.sampled_from(("utf-8", "utf-16", "iso-8859-1")))
    text = f'<?xml version="1.0" encoding="{encoding}"?><root>{comment}{body}</root>'
    return MarkedFile(text.encode(encoding), "xml", marks)


@st.composite
def tab_separated_files(draw: st.DrawFn) -> MarkedFile:
    """Tab-separated files, with titles above their header, and quoted cells."""
    marks = Marks()
    width = draw(st.integers(1, 4))
    quote = '"' if draw(st.booleans()) else ""
    title = f"{marks.show()}" + "\t" * (width - 1) + "\n" if draw(st.booleans()) else ""
    lines = [
        "\t".join(f"{quote}{draw(st.sampled_from((marks.show, marks.number)))()}{quote}" for _ in range(width))
        for _ in range(draw(st.integers(1, 40)))
    ]
    return MarkedFile((title + "\n".join(lines)).encode(), "tsv", marks)


@st.composite
def subtitles(draw: st.DrawFn) -> MarkedFile:
    """Subtitles of both formats, with names, styles and comments."""
    marks = Marks()
    is_vtt = draw(st.booleans())
    written = f"WEBVTT {marks.hide()}\n\nSTYLE\n::cue {{ color: {marks.hide()} }}\n\n" if is_vtt else ""
    for number in range(draw(st.integers(1, 30))):
        if is_vtt and draw(st.booleans()):
            written += f"NOTE\n{marks.hide('comments')}\n\n"
        if not is_vtt or draw(st.booleans()):
            written += f"{number + 1}\n"
        point = "." if is_vtt else ","
        written += f"00:00:{number:02d}{point}000 --> 00:00:{number:02d}{point}900\n"
        voice = f"<v {marks.show()}>" if is_vtt and draw(st.booleans()) else ""
        written += f"{voice}{marks.show()} <i>{marks.show()}</i>"
        written += (f"\n{marks.show()}" if draw(st.booleans()) else draw(st.sampled_from(("", ".")))) + "\n\n"
    return MarkedFile(written.encode(), "vtt" if is_vtt else "srt", marks)
