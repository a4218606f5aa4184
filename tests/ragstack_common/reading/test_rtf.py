"""What Word shows is the text of an RTF file."""

# ruff: noqa: E501, RUF001 - RTF, and other languages

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest

from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.html import pages
from ragstack_common.reading.rtf import read
from ragstack_common.reading.word import document
from tests.support.office_files import docx, p
from tests.support.soak import SOAK

FONTS = (
    r"{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fcharset204{\*\panose 02020603}Times;}{\f2\fcharset128 MS Gothic;}"
    r"{\f3\fcharset2 Symbol;}{\f4\fnil\fcharset1\cpg1253 Cpg;}}"
)


def text(rtf: str) -> str:
    return read(rf"{{\rtf1\ansi\ansicpg1252\deff0{FONTS}{rtf}}}".encode("latin-1"))


@pytest.mark.parametrize(
    ("rtf", "shown"),
    [
        (r"Leave.\par Thirty {\b da}ys.\par", "Leave.\n\nThirty days."),
        ("one\r\n two\\\r\nthree", "one two\n\nthree"),
        (r"caf\'e9 \{a\} \\ b\~c\_d e\-f", "café {a} \\ b c-d ef"),
        (r"a\tab b\line c\emdash d\ldblquote e\rdblquote ", "a b\nc\u2014d\u201ce\u201d"),
        (r"5 \u8364\'80 and \u8364? and \u-10179 ?\u-8704 ?!", "5 € and € and 😀!"),
        (r"{\uc0\u1046 }{\uc2\u1046 abc}\u1046 xy", "ЖЖcЖy"),
        (r"{\f1 \'cf\'f0\'e8\'e2\'e5\'f2} {\f2 \'93\'fa\'96\'7b} {\f4\'e1}", "Привет 日本 α"),
        (r"\f1\'cf\plain\'cf", "ПÏ"),
        (r"5 {\f3\'b1} 2{\f3\u-3920 ?}C", "5 ± 2°C"),
        (r"28{\super 3} days, H{\sub 2}O, 1{\super st\nosupersub x}", "28³ days, H₂O, 1stx"),
        (r"a{\v secret}{\deleted gone}\v secret\v0 b", "ab"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt the policy}}{\field{\*\fldinst PAGE}{\fldrslt 7}}", "the policy7"),
        (r"a{\pict\wmetafile8\bin5 }}}}}0102ff}b", "ab"),
        (r"{\object{\*\objdata 0102}{\result shown}}", "shown"),
        (r"{\info{\title secret}}{\*\generator x;}{\*\unknown secret {secret}}{\stylesheet{\s1 secret;}}a", "a"),
        (r"a{\*\annotation secret}{\annotation secret}{\xe secret}b", "ab"),
        (r"{\upr{\'3f}{\*\ud{\u1046\'3f}}}", "Ж"),
        (r"\pard\outlinelevel1 Scope\par\pard All.\par", "## Scope\n\nAll."),
        (r"\pard{\listtext\pard\plain 1.\tab}a\par{\pntext\f3\'b7\tab}b\par\pard\ilvl1{\listtext\f3\'b7\tab}c\par", "1. a\n- b\n  - c"),
        (r"\pard\outlinelevel0{\listtext 2.1\tab}Duties\par", "# 2.1 Duties"),
        (r"{\shp{\*\shpinst{\sp{\sn secret}{\sv 1}}{\shptxt Stop: 7714\par}}{\shprslt{\*\do\dptxbxtext secret}}}Before.", "Stop: 7714\n\nBefore."),
        (r"a\page b\sect c", "a\n\nb\n\nc"),
        (r"{\mmath{\*\moMath{\mf{\mfPr}{\mnum 1}{\mden 2}}}}", "1/2"),
        (r"# not a heading", "\\# not a heading"),
        (r"a{b{c}", "abc"),
        (r"a}b}c", "abc"),
    ],
)  # fmt: skip
def test_all_that_is_shown_is_read_and_nothing_else(rtf: str, shown: str) -> None:
    found = text(rtf)

    assert re.sub(r"\n+", "\n", found) == re.sub(r"\n+", "\n", shown)


def test_a_table_within_a_table_is_one_and_the_outer_one_arranges() -> None:
    def nested(*cells: str) -> str:
        written = "".join(rf"\pard\intbl\itap2 {each}\nestcell" for each in cells)
        return rf"{written}{{\*\nesttableprops\trowd\cellx500\cellx900\nestrow}}{{\nonesttables\par}}"

    inner = nested("Site", "Days") + nested("Lisbon", "30")
    outer = rf"\trowd\cellx1000\cellx2000\pard\intbl Left\cell{inner}\pard\intbl\itap1 after\cell\row"

    assert text(rf"{outer}\trowd\cellx1000\pard\intbl Below\cell\row\pard End.\par") == (
        "Left\n\n| Site | Days |\n| --- | --- |\n| Lisbon | 30 |\n\nafter\n\nBelow\n\nEnd."
    )


def test_tables_have_the_columns_of_their_edges() -> None:
    def row(edges: str, *cells: str) -> str:
        return rf"\trowd{edges}\pard" + "".join(rf"\intbl {each}\cell" for each in cells) + r"\row"

    table = (
        r"\pard Limits:\par" + row(r"\trhdr\cellx1000\cellx3000", "Site", "2025") + row(r"\trhdr\cellx1000\cellx2000\cellx3010", "", "Q1", "Q2")
        + row(r"\clvmgf\cellx1000\cellx2000\cellx3000", "Lisbon", r"1\par more", "2") + row(r"\clvmrg\cellx1000\cellx2000\cellx3000", "", "3", "4 | 5")
        + r"\pard After.\par"
    )  # fmt: skip

    assert text(table) == (
        "Limits:\n\n| Site | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- |\n| Lisbon | 1 more | 2 |\n| Lisbon | 3 | 4 \\| 5 |\n\nAfter."
    )


def test_headers_and_footers_are_read_once_if_a_page_shows_them() -> None:
    header = r"{\header QX-4471\par}{\headerf secret}{\footer Bank 55 {\field{\*\fldinst{ PAGE }}{\fldrslt 1}}\par}"

    assert text(
        rf"\sectd{header}One.\par\sect\sectd\titlepg{{\headerf First}}{header.replace('secret', 'First')}Two.\par"
    ) == ("QX-4471\n\nFirst\n\nOne.\n\nTwo.\n\nBank 55")


def test_notes_follow_their_section_with_their_number() -> None:
    note = r"28{\super\chftn{\footnote\pard\plain{\super\chftn} In the first year: 20 days.\par}} days.\par "

    assert text(rf"{note}More.\par\pard\outlinelevel0 Next\par\pard Last.\par") == (
        "28¹ days.\n\nMore.\n\n¹ In the first year: 20 days.\n\n# Next\n\nLast."
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "rtf",
    ["{" * 9_000 + "a", r"\'e9" * 100_000, r"{\b a}" * 50_000, r"\trowd\cellx1\intbl a\cell\cell\row" * 5_000, r"\bin9999999999 a",
     r"\u-99999?\uc99999\u1a", "\\"],
)  # fmt: skip
def test_endless_files_end_soon(rtf: str) -> None:
    text(rtf)


def test_groups_without_end_are_refused() -> None:
    with pytest.raises(RecursionError):
        text("{" * 20_000)


def test_another_file_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="does not begin"):
        read(b"<p>a")


def test_a_file_within_a_word_document_is_read() -> None:
    data = docx(p("Before.") + '<w:altChunk r:id="c1"/>', files={"c1": ("aFChunk", "c.rtf", rb"{\rtf1 Be{\b tween}.}")})

    assert document.read(data) == "Before.\n\nBetween."


PAGE = """<!doctype html><meta charset=utf-8><h1>Leave &amp; holidays</h1><p>Thirty <b>d</b>ays, 28<sup>3</sup>, H<sub>2</sub>O, café, 5&nbsp;€.</p>
<h2>Scope</h2><ol><li>one<li>two<ul><li>deep</ul></ol><p>Привет мир, 東京 12, Ελληνικά, 한국어 texts, Čeština ř ž, Türkçe ğ ı, 😀 {braces} \\back|slash</p>
<table><tr><th>Site<th>Q1<th>Q2<tr><td rowspan=2>Lisbon<td>1<td>2<tr><td>3<td>4</table><p>line one<br>line two</p><pre>a  b
c</pre><p><a href="http://x/">the policy</a>, <i>“quoted” – dash…</i></p>"""


@pytest.mark.skipif(not SOAK, reason="part of the long run")
@pytest.mark.skipif(shutil.which("soffice") is None, reason="apt install libreoffice-writer")
def test_what_libreoffice_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = ["soffice", profile, "--headless", "--infilter=HTML (StarWriter)", "--convert-to", "rtf:Rich Text Format"]
    subprocess.run(
        [*command, "--outdir", tmp_path, tmp_path / "page.html"], capture_output=True, check=True, timeout=120
    )

    def words(markdown: str) -> list[str]:
        return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", markdown))

    found = read((tmp_path / "page.rtf").read_bytes())

    assert words(found) == words(pages.read(PAGE.encode()).text)
    assert "| Site | Q1 | Q2 |\n| --- | --- | --- |\n| Lisbon | 1 | 2 |\n| Lisbon | 3 | 4 |" in found
    assert "# Leave & holidays" in found
