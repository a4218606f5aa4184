"""reStructuredText and Org are read as their rendered documents show them."""

# ruff: noqa: E501 - files in lines

import pytest

from ragstack_common.reading.conversion import convert


def rst(written: str) -> str:
    return convert(written.encode(), "rst").text


def org(written: str) -> str:
    return convert(written.encode(), "org").text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("=====\nTitle\n=====\n\nOne\n===\n\n*a* **b** ``c d``\n\nTwo\n---\n\nx", "# Title\n\n## One\n\na b c d\n\n### Two\n\nx"),
        ("1. one\n\n   - a\n   - b\n\n2. two\n\n#. three\n\nb) x", "1. one\n  - a\n  - b\n2. two\n3. three\nb) x"),
        ("term\n   what it is\n\n:Field: value\n\n-a  option", "term\n\nwhat it is\n\nField: value\n\n-a option"),
        ("a [1]_ H\\ :sub:`2`\\ O |x| `link <http://b>`_ `site`_\n\n.. |x| replace:: y\n.. _site: http://c\n\n.. [1] note", "a ¹ H₂O y link site\n\n[1] note"),
        (".. code-block:: python\n   :linenos:\n\n   x = 1\n\ntext::\n\n   y", "```python\nx = 1\n```\n\ntext:\n\n```\ny\n```"),
        (".. note::\n   Take care.\n\n.. admonition:: Mind\n\n   this", "Note:\n\nTake care.\n\nMind\n\nthis"),
        ("+---+---+\n| A | B |\n+===+===+\n| 1 | 2 |\n+   +---+\n|   | 3 |\n+---+---+", "| A | B |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |"),
        ("===  ===\nX    Y\n===  ===\na    b c\n===  ===", "| X | Y |\n| --- | --- |\n| a | b c |"),
        (".. list-table:: Cap\n   :header-rows: 1\n\n   * - H\n     - I\n   * - c\n     - d", "Cap\n\n| H | I |\n| --- | --- |\n| c | d |"),
        (".. csv-table::\n   :header: a, b\n\n   1, 2", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("| one\n| two", "one\ntwo"),
        (".. figure:: p.png\n   :alt: secret\n\n   The caption.\n\n.. image:: p.png", "The caption."),
        (".. a comment\n   secret\n\n..\n   secret\n\nx", "x"),
        ("+----+\n| crooked |\n+----+\n\nx", "```\n+----+\n| crooked |\n+----+\n```\n\nx"),
        # Sphinx
        (".. toctree::\n   :maxdepth: 2\n\n   secret\n\n.. versionadded:: 2.0\n   New.\n\n.. deprecated:: 3.0", "Added in version 2.0: New.\n\nDeprecated since version 3.0"),
        (".. py:function:: add(a, *b)\n\n   Adds :py:class:`~a.b.Number` and :ref:`the rest <x>` to :term:`sums`.", "add(a, *b)\n\nAdds Number and the rest to sums."),
        (".. tab-set::\n\n   .. tab-item:: Linux\n\n      apt", "Linux\n\napt"),
    ],
)  # fmt: skip
def test_restructured_text_is_what_the_page_shows(written: str, shown: str) -> None:
    assert rst(written) == shown


@pytest.mark.parametrize(
    "written",
    [
        ".. include:: /etc/hostname",
        ".. literalinclude:: /etc/hostname",
        ".. raw:: html\n\n   <b>secret</b>",
        ".. raw:: html\n   :file: /etc/hostname",
        ".. csv-table::\n   :file: /etc/hostname",
        ".. include:: /etc/hostname\n   :literal:",
    ],
)
def test_no_file_is_included_and_no_page_is_raw(written: str) -> None:
    assert rst(f"{written}\n\nx").endswith("x")
    assert "secret" not in rst(written)
    assert len(rst(written)) < 10


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("#+TITLE: Leave /days/\n#+AUTHOR: Ana\n#+OPTIONS: toc:nil\n\n# comment\ntext", "# Leave days\n\nAuthor: Ana\n\ntext"),
        ("* TODO [#A] First :work:\nSCHEDULED: <2026-01-05 Mon>\n:PROPERTIES:\n:ID: secret\n:END:\ntext\n** Second", "# TODO First :work:\n\ntext\n\n## Second"),
        ("- one\n  more\n  - [X] two\n- term :: what\n\n1) x\n2) y", "- one more\n  - [X] two\n- term: what\n1) x\n2) y"),
        ("| A | B |\n|---+---|\n| *1* | =2= |\n#+TBLFM: $1=2", "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ("#+BEGIN_SRC python :results output\n  x = 1\n    ,* y\n#+END_SRC\n: fixed", "```python\nx = 1\n  * y\n```\n\n```\nfixed\n```"),
        ("#+begin_quote\none\n\n- two\n#+end_quote\n#+begin_comment\nsecret\n#+end_comment\n#+begin_export html\nsecret\n#+end_export", "> one\n>\n> - two"),
        ("*b* /i/ _u_ +s+ =*v*= ~c~ a_b 5*3*2 */x/*", "b i u s *v* c a_b 5*3*2 x"),
        ("[[http://a][text]] [[http://b]] [[file:p.png]] [[file:a.pdf]]", "text http://b  a.pdf"),
        ("a[fn:1] b[fn:: inline]\n\n[fn:1] note", "a[1] b(inline)\n\n[1] note"),
        ("* COMMENT a\nsecret\n** b\nsecret\n* c :noexport:\nsecret\n* d\nx", "# d\n\nx"),
        ("a\n-----\nb", "a\n\nb"),
    ],
)  # fmt: skip
def test_org_is_what_the_exported_document_shows(written: str, shown: str) -> None:
    assert org(written) == shown


@pytest.mark.timeout(20)
@pytest.mark.parametrize("written", ["*a " * 100_000, "[[" * 100_000, "- " * 50_000, "|" * 200_000, "* a\n" * 20_000])
def test_endless_org_files_end_soon(written: str) -> None:
    org(written)
