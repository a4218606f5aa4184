"""reStructuredText and Org files whose words are in every place that the formats have for them."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks

if TYPE_CHECKING:
    from collections.abc import Callable


@st.composite
def restructured_texts(draw: st.DrawFn) -> MarkedFile:
    """Files of reStructuredText."""
    marks = Marks()
    show, hide = marks.show, marks.hide

    def figure() -> str:
        marks.left_out["pictures"] += 1
        return f".. figure:: {hide()}.png\n   :alt: {hide()}\n\n   {show()}"

    rule = "==========  =========="
    blocks: list[Callable[[], str]] = [
        lambda: f"{show()} *{show()}* ``{show()}`` `{show()} <http://{hide()}>`_",
        lambda: f"{show()}\n{'-' * 20}\n\n{show()}",
        lambda: f"- {show()}\n\n  1. {show()}\n\n- {show()}",
        lambda: f"{show()}\n   {show()}\n\n:{show()}: {show()}",
        lambda: f".. note:: {show()}\n\n   {show()}",
        lambda: f".. code-block:: python\n   :linenos:\n\n   {show()} = 1",
        lambda: f"{show()}::\n\n   {show()}",
        lambda: f"+-------------+-------------+\n| {show()}      | {show()}     |\n+-------------+-------------+",
        lambda: f"{rule}\n{show()}      {show()}\n{rule}\n{show()}      {show()}\n{rule}",
        lambda: f".. list-table:: {show()}\n\n   * - {show()}\n     - {show()}",
        lambda: f"| {show()}\n| {show()}",
        lambda: f".. {hide('comments')}\n   {hide()}",
        lambda: f".. toctree::\n   :maxdepth: 2\n\n   {hide()}",
        lambda: f".. function:: {show()}(x)\n\n   {show()} :ref:`{show()} <{hide()}>` :term:`{show()}`",
        lambda: f".. include:: {hide()}\n\n.. _{hide()}: http://a",
        figure,
    ]
    text = "\n\n".join(draw(st.sampled_from(blocks))() for _ in range(draw(st.integers(1, 8))))
    return MarkedFile(f"{show()}\n{'=' * 20}\n\n{show()}\n\n{text}\n".encode(), "rst", marks)


@st.composite
def org_files(draw: st.DrawFn) -> MarkedFile:
    """Org files."""
    marks = Marks()
    show, hide = marks.show, marks.hide

    def picture() -> str:
        marks.left_out["pictures"] += 1
        return f"{show()} [[file:{hide()}.png]]"

    blocks: list[Callable[[], str]] = [
        lambda: f"{show()} *{show()}* ={show()}= [[http://{hide()}][{show()}]]",
        lambda: f"* TODO {show()} :{show()}:\nSCHEDULED: <{hide()}>\n:PROPERTIES:\n:ID: {hide()}\n:END:\n{show()}",
        lambda: f"- {show()}\n  {show()}\n  1. {show()}\n- {show()} :: {show()}",
        lambda: f"#+CAPTION: {show()}\n| {show()} | {show()} |\n|---+---|\n| {show()} | {show()} |\n#+TBLFM: {hide()}",
        lambda: f"#+BEGIN_SRC python\n{show()} = 1\n#+END_SRC",
        lambda: f"#+begin_quote\n{show()}\n#+end_quote\n: {show()}",
        lambda: f"#+begin_comment\n{hide()}\n#+end_comment\n# {hide()}\n#+OPTIONS: {hide()}",
        lambda: f"** COMMENT {hide()}\n{hide()}\n** x :noexport:\n{hide()}\n* {show()}",
        picture,
    ]
    text = "\n\n".join(draw(st.sampled_from(blocks))() for _ in range(draw(st.integers(1, 8))))
    return MarkedFile(f"#+TITLE: {show()}\n\n{show()}\n\n{text}\n".encode(), "org", marks)
