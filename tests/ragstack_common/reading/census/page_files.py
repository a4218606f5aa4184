"""Web pages and text files whose words are in every place that the formats have for them."""

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks

_DEEPEST: Final = 3
_HIDDEN_STYLES: Final = (
    "display:none", "visibility:hidden", "position:absolute;left:-9999px", "opacity:0", "font-size:0",
    "text-indent:-9999px", "width:1px;height:1px;overflow:hidden", "clip-path:inset(100%)",
)  # fmt: skip


class _Page:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()

    def bytes(self) -> bytes:
        sheet = ".gone, .off .in { display: none } .b { display: block } @media print { p { display: none } }"
        head = f"<head><title>t</title><script>{self.marks.hide()}</script><style>{sheet}</style></head>"
        body = f"<p>{self.marks.show()}</p>{self._blocks(0)}"
        return f"<!doctype html><html>{head}<body>{body}</body></html>".encode()

    def _one_of(self, *choices: Callable[[], str]) -> str:
        return self._draw(st.sampled_from(choices))()

    def _blocks(self, depth: int) -> str:
        kinds: list[Callable[[], str]] = [
            lambda: f"<p>{self._inlines()}</p>",
            lambda: f"<h2>{self._inlines()}</h2>",
            lambda: f"<pre>{self.marks.show()}\n  {self.marks.show()}</pre>",
            self._form,
            self._hidden,
        ]
        if depth < _DEEPEST:
            kinds += [
                lambda: f"<div>{self._inlines()}{self._blocks(depth + 1)}{self._inlines()}</div>",
                lambda: f"<details><summary>{self.marks.show()}</summary>{self._blocks(depth + 1)}</details>",
                lambda: self._list(depth),
                lambda: self._table(depth),
            ]
        return "".join(self._one_of(*kinds) for _ in range(self._draw(st.integers(1, 4))))

    def _inlines(self) -> str:
        return " ".join(
            self._one_of(
                lambda: f"{self.marks.show()} and <b>{self.marks.show()}</b>",
                lambda: f'<a href="{self.marks.hide()}" title="{self.marks.hide()}">{self.marks.show()}</a>',
                lambda: f"{self.marks.show()}<br>{self.marks.show()}",
                lambda: f"{self.marks.show()}<sup>1</sup> {self.marks.show()}<sub>2</sub>",
                lambda: f"<ruby>{self.marks.show()}<rp>(</rp><rt>{self.marks.show()}</rt><rp>)</rp></ruby>",
                lambda: f"<q>{self.marks.show()}</q><s>{self.marks.show()}</s>",
                lambda: f"<span class=b>{self.marks.show()}</span>{self.marks.show()}",
                self._hidden_inline,
                self._picture,
            )
            for _ in range(self._draw(st.integers(1, 3)))
        )

    def _picture(self) -> str:
        self.marks.left_out["pictures"] += 1
        alt = self.marks.hide()
        return self._one_of(
            lambda: f'<img alt="{alt}">',
            lambda: f"<svg><title>{alt}</title><text>{self.marks.show()}</text></svg>",
            lambda: f"<canvas>{alt}</canvas>",
        )

    def _hidden_inline(self) -> str:
        word = self.marks.hide("hidden passages")
        style = self._draw(st.sampled_from(_HIDDEN_STYLES))
        return self._one_of(
            lambda: f'<span style="{style}">{word}</span>',
            lambda: f"<span class=gone>{word}</span>",
            lambda: f"<span class=off><i class=in>{word}</i></span>",
            lambda: f"<span hidden><b>{word}</b></span>",
            lambda: (
                f'<span style="visibility:hidden">{word}<b style="visibility:visible">{self.marks.show()}</b></span>'
            ),
        )

    def _hidden(self) -> str:
        if self._draw(st.booleans()):
            return f"<!-- {self.marks.hide()} --><script>{self.marks.hide()}</script>"
        word = self.marks.hide("hidden passages")
        return self._one_of(
            lambda: f"<div hidden><p>{word}</p><p>{word}</p></div>",
            lambda: f"<dialog>{word}</dialog>",
            lambda: f"<noscript>{word}</noscript>",
            lambda: f"<template><p>{word}</p></template>",
            lambda: f"<object>{word}</object>",
            lambda: f"<table class=gone><tr><td>{word}<td>{word}</table>",
        )

    def _form(self) -> str:
        chosen = f"<option>{self.marks.hide()}</option><option selected>{self.marks.show()}</option>"
        return (
            f'<form><label>{self.marks.show()}</label><input value="{self.marks.show()}"><input type=hidden'
            f' value="{self.marks.hide()}"><input type=checkbox value="{self.marks.hide()}"><select>{chosen}</select>'
            f"<textarea>{self.marks.show()}</textarea><button>{self.marks.show()}</button></form>"
        )

    def _list(self, depth: int) -> str:
        kind = self._draw(st.sampled_from(("ul", "ol")))
        items = "".join(
            f"<li>{self._inlines()}{self._blocks(depth + 1)}</li>" for _ in range(self._draw(st.integers(1, 3)))
        )
        return f"<{kind}>{items}</{kind}><dl><dt>{self.marks.show()}<dd>{self.marks.show()}</dl>"

    def _table(self, depth: int) -> str:
        rows = f"<caption>{self.marks.show()}</caption>"
        for _ in range(self._draw(st.integers(1, 3))):
            cells = "".join(
                f"<td colspan={self._draw(st.integers(1, 2))} rowspan={self._draw(st.integers(1, 2))}>"
                + self._one_of(self._inlines, lambda: self._blocks(depth + 1), self.marks.show)
                + "</td>"
                for _ in range(self._draw(st.integers(1, 3)))
            )
            rows += f"<tr>{cells}</tr>"
        return f"<table>{rows}</table>"


@st.composite
def web_pages(draw: st.DrawFn) -> MarkedFile:
    """Web pages of any structure."""
    page = _Page(draw)
    return MarkedFile(page.bytes(), "html", page.marks)


@st.composite
def markdown_files(draw: st.DrawFn) -> MarkedFile:
    """Markdown files with front matter, comments, code, tables and HTML."""
    marks = Marks()
    blocks: list[Callable[[], str]] = [
        lambda: f"{marks.show()} and *{marks.show()}* with [{marks.show()}](http://a.b)",
        lambda: f"## {marks.show()}",
        lambda: f"- {marks.show()}\n  - {marks.show()}",
        lambda: f"{marks.show()}\n=====",
        lambda: f"| {marks.show()} | b |\n|---|---|\n| {marks.show()} | {marks.show()} |",
        lambda: f"```\n{marks.show()} <!-- {marks.show()} -->\n```",
        lambda: f"~~~ html\n<script>{marks.show()}</script>\n```\n~~~",
        lambda: f"<details><summary>{marks.show()}</summary>\n\n{marks.show()}\n</details>",
        lambda: f"{marks.show()} <!-- {marks.hide('comments')}\n\n{marks.hide()} --> {marks.show()}",
        lambda: f"<script>{marks.hide('comments')}</script>",
        lambda: f"<style>\n.x {{ {marks.hide('comments')} }}\n</style>",
    ]
    front = f"---\ntitle: t\nkey: {marks.hide()}\n---\n" if draw(st.booleans()) else ""
    text = "\n\n".join(draw(st.sampled_from(blocks))() for _ in range(draw(st.integers(1, 8))))
    return MarkedFile(f"{front}{marks.show()}\n\n{text}\n".encode(), "md", marks)


@st.composite
def text_files(draw: st.DrawFn) -> MarkedFile:
    """Plain and comma-separated files, in several encodings and with several ends of lines."""
    marks = Marks()
    file_format = draw(st.sampled_from(("csv", "txt")))
    between = draw(st.sampled_from((",", ";", "\t"))) if file_format == "csv" else " "
    cells: list[Callable[[], str]] = [
        marks.show,
        lambda: str(marks.number()),
        lambda: f'"{marks.show()}{between}{marks.show()}"',
        lambda: f'"{marks.show()}\n{marks.show()}"' if file_format == "csv" else marks.show(),
    ]
    lines = [between.join(draw(st.sampled_from(cells))() for _ in range(3)) for _ in range(draw(st.integers(1, 60)))]
    text = draw(st.sampled_from(("\n", "\r\n"))).join([f"{marks.show()}{between}b{between}c", *lines])
    return MarkedFile(text.encode(draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16")))), file_format, marks)
