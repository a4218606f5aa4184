"""What Word shows is the text of a document."""

# ruff: noqa: E501, ISC004, Q000 - XML

import pytest

from ragstack_common.reading.word.document import read
from tests.support.office_files import STRICT, TRANSITIONAL, docx, p, r

HEADINGS = '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
LEGAL = (
    '<w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%2)"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1.%3"/></w:lvl>'
    "</w:abstractNum>"
    '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
)


def item(text: str, level: int = 0, number: int = 1) -> str:
    return p(text, properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


@pytest.mark.parametrize("edition", [TRANSITIONAL, STRICT])
def test_headings_and_paragraphs_are_blocks(edition: str) -> None:
    body = p("Leave", style="H1") + p("Thirty ", r("days", "<w:b/>"), " of leave.") + p("") + p("Ask early.")

    assert (
        read(docx(body, {"styles": ("styles", HEADINGS)}, edition=edition))
        == "# Leave\n\nThirty days of leave.\n\nAsk early."
    )


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ('<w:del><w:r><w:delText>no</w:delText></w:r></w:del><w:ins><w:r><w:t>yes</w:t></w:r></w:ins>', "yes"),
        ('<w:moveFrom><w:r><w:t>no</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>yes</w:t></w:r></w:moveTo>', "yes"),
        ('<w:fldSimple w:instr="DATE"><w:r><w:t>31 May</w:t></w:r></w:fldSimple>', "31 May"),
        (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r>'
            '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>31 May</w:t></w:r>'
            '<w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>!</w:t></w:r>',
            "31 May!",
        ),
        ('<w:sdt><w:sdtPr/><w:sdtContent><w:r><w:t>Ann</w:t></w:r></w:sdtContent></w:sdt>', "Ann"),
        ('<w:customXml><w:smartTag><w:r><w:t>Ann</w:t></w:r></w:smartTag></w:customXml>', "Ann"),
        ('<w:bdo w:val="rtl"><w:dir w:val="rtl"><w:r><w:rPr><w:rtl/></w:rPr><w:t>שלום</w:t></w:r></w:dir></w:bdo>', "שלום"),
        ('<w:hyperlink r:id="x"><w:r><w:t>the policy</w:t></w:r></w:hyperlink>', "the policy"),
        (r("secret", "<w:vanish/>") + r("seen", '<w:vanish w:val="0"/>'), "seen"),
        ('<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r>', "東京(とうきょう)"),
        ('<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:softHyphen/><w:t>e</w:t></w:r>', "a b\nc-de"),
        (r("28") + r("3", '<w:vertAlign w:val="superscript"/>') + r(" days, H") + r("2", '<w:vertAlign w:val="subscript"/>') + r("O"), "28³ days, H₂O"),
        (r("1") + r("st", '<w:vertAlign w:val="superscript"/>') + r(" Acme") + r("TM", '<w:vertAlign w:val="superscript"/>'), "1st Acme TM"),
        ('<w:r><w:t>5 </w:t><w:sym w:font="Symbol" w:char="F0B1"/><w:t> 2</w:t><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>', "5 ± 2✓"),
        ('<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>', "1/2"),
        (
            '<m:oMath><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></m:oMath>',
            "10⁶",
        ),
    ],
)  # fmt: skip
def test_all_runs_that_are_shown_are_read_and_no_others(runs: str, text: str) -> None:
    assert read(docx(f"<w:p>{runs}</w:p>")) == text


def test_styles_of_paragraphs_can_hide_them() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Z"><w:name w:val="z-Top of Form"/><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Seen"><w:rPr><w:vanish w:val="0"/></w:rPr></w:style>'
    )
    body = p("secret", r("seen", '<w:rStyle w:val="Seen"/>'), style="Z") + p(
        r("word", '<w:vanish w:val="0"/>'), style="Z"
    )

    assert read(docx(body, {"styles": ("styles", styles)})) == "seen\n\nword"


def test_a_hidden_paragraph_has_no_number() -> None:
    hidden = p(
        r("secret", "<w:vanish/>"), properties='<w:numPr><w:numId w:val="1"/></w:numPr><w:rPr><w:vanish/></w:rPr>'
    )

    assert read(docx(item("a") + hidden + item("b"), {"numbering": ("numbering", LEGAL)})) == "1. a\n2. b"


def test_a_box_to_check_says_whether_it_is_checked() -> None:
    field = '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked w:val="{}"/></w:checkBox></w:ffData></w:fldChar></w:r>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'

    assert read(docx(p(field.format(1), end, " Yes", field.format(0), end, " No"))) == "[x] Yes[ ] No"


def test_the_text_of_a_box_follows_its_paragraph() -> None:
    shape = "<wps:txbx><w:txbxContent>{}</w:txbxContent></wps:txbx>"
    fallback = "<w:pict><v:textbox><w:txbxContent>" + p("Stop: 7714") + "</w:txbxContent></v:textbox></w:pict>"
    both = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>{shape.format(p("Stop: 7714"))}</w:drawing>'
        f"</mc:Choice><mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent></w:r>"
    )

    for box in (both, f"<w:r><w:drawing>{shape.format(p('Stop: 7714'))}</w:drawing></w:r>", f"<w:r>{fallback}</w:r>"):
        assert read(docx(p("Before", box, "after.") + p("End."))) == "Beforeafter.\n\nStop: 7714\n\nEnd."


def test_text_around_the_page_is_escaped_once() -> None:
    header = docx_part("hdr", p("a &lt;b&gt;") + p("# c"))
    section = '<w:sectPr><w:headerReference w:type="default" r:id="h"/></w:sectPr>'

    assert read(docx(section, files={"h": ("header", "h.xml", header)})) == "a \\<b>\n\n\\# c"


def test_headers_and_footers_are_read_once_if_a_page_shows_them() -> None:
    page = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>1</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    section = (
        '<w:sectPr><w:headerReference w:type="default" r:id="h1"/><w:headerReference w:type="first" r:id="h2"/>'
        '<w:footerReference w:type="default" r:id="f1"/></w:sectPr>'
    )
    parts = {"h1": ("hdr", p("QX-4471")), "h2": ("hdr", p("First")), "f1": ("ftr", p("Bank 55-8832-1 ", page))}
    kinds = {"hdr": "header", "ftr": "footer"}
    data = docx(
        f"<w:p><w:pPr>{section}</w:pPr><w:r><w:t>One.</w:t></w:r></w:p>" + p("Two.") + section,
        files={own: (kinds[kind], f"{own}.xml", docx_part(kind, content)) for own, (kind, content) in parts.items()},
    )

    assert read(data) == "QX-4471\n\nOne.\n\nTwo.\n\nBank 55-8832-1"


def docx_part(kind: str, content: str) -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return f"<w:{kind} {space}>{content}</w:{kind}>".encode()


def test_notes_follow_their_section_with_their_number() -> None:
    note = (
        '<w:footnote w:id="7">'
        + p("In the first year: 20 days.")
        + '</w:footnote><w:footnote w:id="8" w:type="separator"/>'
    )
    reference = '<w:r><w:footnoteReference w:id="7"/></w:r>'
    body = p("28", reference, " days.") + p("More.") + p("Next", style="H1") + p("Last.")

    found = read(docx(body, {"styles": ("styles", HEADINGS), "n": ("footnotes", note)}))

    assert found == "28¹ days.\n\nMore.\n\n¹ In the first year: 20 days.\n\n# Next\n\nLast."


def test_lists_are_numbered_as_word_numbers_them() -> None:
    body = (
        item("a")
        + item("b", 1)
        + item("c", 1)
        + item("d", 2)
        + p("Between.")
        + item("e")
        + item("f", 1)
        + item("g", 0, 3)
        + item("h", 0, 2)
    )

    assert read(docx(body, {"numbering": ("numbering", LEGAL)})) == (
        "1. a\n  (a) b\n  (b) c\n    1.I d\n\nBetween.\n\n2. e\n  (a) f\n1. g\n- h"
    )


def test_a_numbered_heading_has_its_number() -> None:
    styles = '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    data = docx(
        p("Scope", style="H1") + p("Duties", style="H1"),
        {"styles": ("styles", styles), "numbering": ("numbering", LEGAL)},
    )

    assert read(data) == "# 1. Scope\n\n# 2. Duties"


def test_a_paragraph_whose_end_was_deleted_continues_in_the_next() -> None:
    body = p("Pay within ", properties="<w:rPr><w:del/></w:rPr>") + p("thirty days.")

    assert read(docx(body)) == "Pay within thirty days."
    assert read(docx(p("Last words", properties="<w:rPr><w:del/></w:rPr>"))) == "Last words"


def test_an_empty_paragraph_of_a_list_has_a_number() -> None:
    assert read(docx(item("a") + item("") + item("c"), {"numbering": ("numbering", LEGAL)})) == "1. a\n3. c"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"


def test_merged_cells_of_a_table_have_their_text_in_each_row_and_column() -> None:
    table = (
        "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>"
        + cell("Site")
        + cell("2025", '<w:gridSpan w:val="2"/>')
        + "</w:tr>"
        "<w:tr><w:trPr><w:tblHeader/></w:trPr>" + cell("") + cell("Q1") + cell("Q2") + "</w:tr>"
        "<w:tr>" + cell("Lisbon", '<w:vMerge w:val="restart"/>') + cell("1") + cell("2") + "</w:tr>"
        "<w:tr>" + cell("", "<w:vMerge/>") + cell("3") + cell("4 | 5") + "</w:tr>"
        "<w:tr><w:trPr><w:del/></w:trPr>" + cell("gone") + cell("") + cell("") + "</w:tr></w:tbl>"
    )

    assert read(docx(table)) == (
        "| Site | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- |\n| Lisbon | 1 | 2 |\n| Lisbon | 3 | 4 \\| 5 |"
    )


def test_a_table_that_arranges_the_page_is_read_cell_by_cell() -> None:
    inner = "<w:tbl><w:tr>" + cell("a") + cell("b") + "</w:tr><w:tr>" + cell("1") + cell("2") + "</w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr>{cell('Left')}<w:tc>{inner}{p('')}</w:tc></w:tr><w:tr>{cell('x')}{cell('y')}</w:tr></w:tbl>"

    assert read(docx(outer)) == "Left\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nx\n\ny"


def test_a_file_within_the_document_is_read_in_its_place() -> None:
    data = docx(
        p("Before.") + '<w:altChunk r:id="c1"/>' + p("After."),
        files={"c1": ("aFChunk", "chunk.html", b"<p>In <b>between</b>.</p>")},
    )

    assert read(data) == "Before.\n\nIn between.\n\nAfter."


def test_a_web_archive_within_the_document_is_decoded() -> None:
    archive = (
        b'MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html; charset="utf-8"\r\n'
        b'Content-Transfer-Encoding: quoted-printable\r\n\r\n<p class=3D"a">In be=\r\ntween: 5=C2=A0=E2=82=AC.</p>\r\n--x\r\n'
        b"Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--x--\r\n"
    )
    data = docx('<w:altChunk r:id="c1"/>', files={"c1": ("aFChunk", "afchunk.mht", archive)})

    assert read(data) == "In between: 5 €."
