"""Files that are damaged at random, from files that are not."""

# ruff: noqa: E501 - XML

import io
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from random import Random
from typing import Final
from xml.etree import ElementTree as ET

from ragstack_common.reading import rtf
from ragstack_common.reading.html import pages
from ragstack_common.reading.opendocument import documents, presentations, spreadsheets
from ragstack_common.reading.sheets import binary, sheet, workbooks
from ragstack_common.reading.slides import powerpoint, powerpoint97
from ragstack_common.reading.word import document
from tests.support import binary_files, old_slide_files, open_files, text_seeds
from tests.support.office_files import (
    DRAWING_SPACES,
    docx,
    label,
    number,
    p,
    r,
    record,
    rows,
    short_text,
    substream,
    text_box,
    xls,
    xlsx,
)
from tests.support.slide_files import MATH, Slide, cells, frame, paragraph, pptx, shape

READERS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "docx": document.read,
    "html": pages.read,
    "odp": presentations.read,
    "ods": lambda data: sheet.text(spreadsheets.OpenSpreadsheet(data).sheets()),
    "odt": documents.read,
    "ppt": powerpoint97.read,
    "pptx": powerpoint.read,
    "rtf": rtf.read,
    "xlsb": lambda data: sheet.text(binary.XlsbWorkbook(data).sheets()),
    "xls": lambda data: sheet.text(workbooks.XlsWorkbook(data).sheets()),
    "xlsx": lambda data: sheet.text(workbooks.XlsxWorkbook(data).sheets()),
    **text_seeds.READERS,
}
VALUES: Final = (
    "", "0", "1", "-1", "9", "2147483648", "-99999999999999999999", "9" * 5000, "abc", "²", "1e9", "1e999", "NaN", "1.5",
    "\u0661", "true", "none", "A1:XFD1048576", "A0", "../../x", "http://127.0.0.1/x", "file:///etc/passwd", "\x7f", "%1%9",
    "0" * 30 + "." + "0" * 200, "[h]:mm;@;;", "[<1..2]0", "\u202e", "x" * 10_000,
)  # fmt: skip
_INTEGERS: Final = (0, 1, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_TAG: Final = re.compile(rb"<[^<>]*>")
_WORD: Final = re.compile(rb"\\(?:[a-z]+-?\d*|[^a-z])|[{}]")
_MAX_DEPTH: Final = 5_000

_CHART: Final = (
    f'<c:chartSpace {DRAWING_SPACES}><c:date1904 val="1"/><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>T</a:t></a:r></a:p>'
    '</c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:v>a</c:v></c:tx><c:dLbls><c:dLbl><c:idx val="0"/>'
    "<c:tx><c:rich><a:p><a:r><a:t>L</a:t></a:r></a:p></c:rich></c:tx></c:dLbl></c:dLbls><c:cat><c:multiLvlStrRef>"
    '<c:multiLvlStrCache><c:lvl><c:pt idx="0"><c:v>Q1</c:v></c:pt></c:lvl><c:lvl><c:pt idx="0"><c:v>2026</c:v></c:pt>'
    "</c:lvl></c:multiLvlStrCache></c:multiLvlStrRef></c:cat><c:val><c:numRef><c:numCache><c:formatCode>0.0</c:formatCode>"
    '<c:pt idx="0"><c:v>1</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser><c:axId val="1"/><c:axId val="2"/></c:barChart>'
    '<c:catAx><c:axId val="1"/><c:delete val="0"/></c:catAx><c:valAx><c:axId val="2"/><c:numFmt formatCode="0"/></c:valAx>'
    "</c:plotArea></c:chart></c:chartSpace>"
)
_DIAGRAM: Final = (
    f'<dgm:dataModel {DRAWING_SPACES}><dgm:ptLst><dgm:pt modelId="0" type="doc"/><dgm:pt modelId="1"><dgm:t><a:p><a:r>'
    '<a:t>D</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst><dgm:cxn srcId="0" destId="1" srcOrd="0"/></dgm:cxnLst>'
    "</dgm:dataModel>"
)
_STYLES: Final = (
    '<w:style w:type="paragraph" w:styleId="H1" w:default="1"><w:name w:val="heading 1"/><w:basedOn w:val="H2"/><w:pPr>'
    '<w:outlineLvl w:val="0"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="character" w:styleId="H2"><w:basedOn w:val="H1"/><w:rPr><w:vanish w:val="0"/></w:rPr></w:style>'
)
_NUMBERING: Final = (
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="lowerRoman"/>'
    '<w:lvlRestart w:val="0"/><w:lvlText w:val="%1.%2"/><w:pStyle w:val="H1"/></w:lvl><w:numStyleLink w:val="H1"/>'
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="4"/>'
    "</w:lvlOverride></w:num>"
)
_DOCX: Final = docx(
    p("Leave", style="H1", properties='<w:outlineLvl w:val="1"/><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>')
    + p('<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>', r("1"), '<w:r><w:fldChar w:fldCharType="end"/></w:r>')
    + p(r("3", '<w:rStyle w:val="H2"/><w:vertAlign w:val="superscript"/>'), '<w:r><w:footnoteReference w:id="7"/></w:r>',
        '<w:r><w:sym w:font="Symbol" w:char="F0B1"/></w:r>', "<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num></m:f></m:oMath>",
        properties="<w:rPr><w:del/></w:rPr>")
    + '<w:tbl><w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr><w:tc><w:tcPr><w:gridSpan w:val="2"/><w:vMerge/></w:tcPr>'
    + p("a") + "</w:tc><w:tc>" + p("b") + "</w:tc></w:tr><w:tr><w:tc>" + p("c") + "</w:tc></w:tr></w:tbl>"
    + "<mc:AlternateContent><mc:Choice>" + p("<w:r><w:pict><v:textbox><w:txbxContent>" + p("box") + "</w:txbxContent></v:textbox></w:pict></w:r>")
    + "</mc:Choice></mc:AlternateContent>" + p('<w:r><w:drawing><c:chart xmlns:c="c" r:id="c"/><d:relIds xmlns:d="d" r:dm="d"/></w:drawing></w:r>')
    + '<w:altChunk r:id="a"/><w:sectPr><w:headerReference w:type="first" r:id="h"/><w:titlePg/></w:sectPr>',
    {"styles": ("styles", _STYLES), "numbering": ("numbering", _NUMBERING), "h": ("header", p("head")),
     "n": ("footnotes", f'<w:footnote w:id="7">{p("note")}</w:footnote>')},
    files={"c": ("chart", "c.xml", _CHART.encode()), "d": ("diagramData", "d.xml", _DIAGRAM.encode()),
           "a": ("aFChunk", "a.html", b"<p>chunk")},
)  # fmt: skip
_XLSX: Final = xlsx(
    {
        "S": '<cols><col min="2" max="3" hidden="1"/></cols>'
        + rows(["a", 1.5, '<c t="s"><v>0</v></c>'], ['<c s="1"><v>46205</v></c>', True, '<c t="e"><v>#N/A</v></c>'])
        + '<autoFilter ref="A1:B2"><filterColumn colId="0"/></autoFilter><mergeCells><mergeCell ref="A1:B2"/></mergeCells>',
        "T": rows(["_x000D_b"]),
    },
    strings=['<r><rPr><vertAlign val="superscript"/></rPr><t>3</t></r>'],
    formats=["[$-407]d. mmmm yyyy;@", "# ?/8", "0.00E+00"],
    workbook='<workbookPr date1904="1"/>',
    drawing="<xdr:sp><xdr:nvSpPr><xdr:cNvPr hidden='0'/></xdr:nvSpPr><xdr:txBody><a:p><a:r><a:t>box</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
    '<c:chart r:id="c"/><dgm:relIds r:dm="d"/>',
    drawn={"c": ("chart", _CHART), "d": ("diagramData", _DIAGRAM)},
)
_FORMATS: Final = (
    record(0x31, struct.pack("<HHHHHBBBB", 200, 0, 0x7FFF, 400, 1, 0, 0, 0, 0) + short_text("Arial"))
    + record(0x41E, struct.pack("<HHB", 164, 4, 0) + b"0.0%")
    + record(0xE0, struct.pack("<HHH14x", 0, 164, 0))
)
_XLS: Final = xls(
    {
        "S": (
            0,
            substream(
                0x10, label(0, 0, "a"), number(0, 1, 0.5), record(0xE5, struct.pack("<5H", 1, 0, 1, 0, 1)),
                record(0x7D, struct.pack("<6H", 2, 2, 9, 0, 1, 0)), text_box("box"),
                substream(
                    0x20, record(0x1003, bytes(12)), record(0x1051, struct.pack("<BBHHH", 1, 2, 0, 10, 0)),
                    record(0x100D, b"\0\0" + short_text("s")), record(0x1065, b"\1\0"), number(0, 0, 1),
                ),
            ),
        ),
        "Chart": (2, substream(0x20, record(0x1025), record(0x100D, b"\0\0" + short_text("t")), record(0x1027, bytes(6)))),
    },
    _FORMATS,
)  # fmt: skip
_HTML: Final = (
    b"<!doctype html><html><head><title>t</title><style>@media screen{.a > b:not(.c, d) ~ e{display:none}} #i{visibility:hidden}"
    b"</style></head><body><h1>a</h1><ol start=3 type=i reversed><li value=7>b<ul><li>c</ul></ol><table><thead><tr><th rowspan=2>"
    b"a<th colspan=2>b</thead><tr><td rowspan=0>c<td>d</table><p class='a' id=i style='display:block !important'>x<sup>2</sup>"
    b"<math><msup><mi>x</mi><mn>2</mn></msup><mfrac><mn>1</mn><mn>2</mn></mfrac></math><ruby>a<rt>b</ruby><select><option selected>"
    b"o</select><pre>a\n b</pre><svg><text>s</text></svg><template>t</template></body></html>"
)
_RTF: Final = (
    rb"{\rtf1\ansi\ansicpg1252\uc1\deff0{\fonttbl{\f0\fcharset204 Arial;}{\f1\fcharset2 Symbol;}}{\header h{\field{\*\fldinst PAGE}"
    rb"{\fldrslt 1}}\par}\titlepg\pard\outlinelevel0 a\'ef\u8364\'80\par\pard{\listtext 1.\tab}\ilvl1 b\chftn{\footnote\chftn n}\par"
    rb"\trowd\trhdr\clvmgf\cellx500\cellx900\pard\intbl c\cell d\cell\row\trowd\clvmrg\cellx500\cellx900\pard\intbl\cell e\cell\row"
    rb"\pard{\f1\'b1}{\v v}{\deleted x}{\super 2}{\shp{\*\shpinst{\sp{\sn s}{\sv 1}}{\shptxt t\par}}}{\pict\bin4 {{}}}{\upr{u}{\*\ud{w}}}\par}"
)
_PPTX: Final = pptx(
    [
        Slide(
            shape("T", kind="ctrTitle")
            + shape(paragraph("a", level=1, bullet='<a:buAutoNum type="alphaLcParenR" startAt="2"/>'), kind="body", index=1)
            + cells(["a", '<a:tc hMerge="1"/>'], ["b", '<a:tc vMerge="1"/>'])
            + frame('<c:chart r:id="c"/>') + frame('<dgm:relIds r:dm="d"/>') + shape("2026", kind="dt")
            + shape(MATH.format("<m:r><m:t>x</m:t></m:r>")),
            notes=shape("note", kind="body"),
            drawn={"c": ("chart", _CHART), "d": ("diagramData", _DIAGRAM)},
        ),
        Slide(shape("b"), 'show="0"'),
    ],
    layout=shape("Click", kind="body", index=1, styles='<a:lvl2pPr><a:buChar char="x"/></a:lvl2pPr>'),
    master=shape("Acme"),
    styles="<p:bodyStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></p:bodyStyle>",
)  # fmt: skip
_OPEN_STYLES: Final = (
    open_files.style("A", "paragraph", '<style:text-properties text:display="true" style:text-position="super 58%"/>',
                     'style:parent-style-name="B" style:master-page-name="M" style:list-style-name="L"')
    + open_files.style("B", "paragraph", attributes='style:parent-style-name="A"')
    + '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="i" style:num-prefix="("'
    ' text:start-value="3"/><text:list-level-style-number text:level="2" style:num-format="1" text:display-levels="2"/></text:list-style>'
)  # fmt: skip
_OPEN_PAGE: Final = '<style:master-page style:name="M" style:next-style-name="M">{}</style:master-page>'
_OPEN_CHART: Final = open_files.chart("T", "A", open_files.row("", "a"), open_files.row("Q1", "1"))
_OPEN_FORMULA: Final = open_files.formula("<math:mfrac><math:mn>1</math:mn><math:mi>n</math:mi></math:mfrac>")
_OPEN_BLOCKS: Final = (
    open_files.listed(open_files.p("a") + open_files.listed(open_files.p("b"), attributes='text:continue-numbering="true"'), style="L")
    + "<table:table>" + open_files.row('<table:table-cell table:number-columns-spanned="2"/>', "<table:covered-table-cell/>")
    + open_files.row("c", "d", attributes='table:number-rows-repeated="2"') + "</table:table>"
    + open_files.p(open_files.box(open_files.p("box")), open_files.drawn("c"), open_files.drawn("f", 'text:anchor-type="as-char"'))
)  # fmt: skip
_OPEN_PARTS: Final = {"c": _OPEN_CHART, "f": _OPEN_FORMULA}
_ODT: Final = open_files.open_document(
    "text",
    open_files.p("Leave", name="h", attributes='text:outline-level="1"')
    + open_files.p('<text:span text:style-name="B">3<text:s text:c="2"/></text:span>', open_files.note("1", open_files.p("n")), style="A")
    + _OPEN_BLOCKS,
    automatic=_OPEN_STYLES, parts=_OPEN_PARTS, in_masters=_OPEN_STYLES,
    masters=_OPEN_PAGE.format(f"<style:header>{open_files.p('h', style='A')}</style:header>"),
)  # fmt: skip
_ODP: Final = open_files.open_document(
    "presentation",
    '<presentation:footer-decl presentation:name="f">F</presentation:footer-decl>'
    + open_files.slide(
        open_files.box(open_files.p("T"), 'presentation:class="title"') + f"<draw:frame>{_OPEN_BLOCKS}</draw:frame>",
        attributes='presentation:use-footer-name="f"', notes=open_files.box(open_files.p("n")),
    ),
    automatic=_OPEN_STYLES, parts=_OPEN_PARTS, masters=_OPEN_PAGE.format(open_files.box(open_files.p("Acme"))),
)  # fmt: skip
_ODS: Final = open_files.open_document(
    "spreadsheet",
    open_files.table(
        "S",
        open_files.row(open_files.cell("5 %", "percentage", "0.05", 'table:style-name="ce"'), open_files.cell("a", attributes='table:number-columns-repeated="2"')),
        open_files.row(open_files.cell("1", "date", "2026-07-02", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>",
                       open_files.cell("1", "time", "PT10H", 'table:style-name="ce"'), attributes='table:number-rows-repeated="3"'),
        columns='<table:table-column table:number-columns-repeated="2" table:visibility="collapse" table:default-cell-style-name="ce"/>',
        attributes='table:style-name="ta"', shapes=open_files.drawn("c"),
    ),
    automatic='<number:percentage-style style:name="N1"><number:number number:decimal-places="2" number:min-integer-digits="1"'
    ' number:grouping="true"/><number:text>%</number:text><style:map style:condition="value()&gt;=0" style:apply-style-name="N2"/></number:percentage-style>'
    '<number:date-style style:name="N2" number:language="de"><number:day/><number:month number:textual="true"/><number:seconds number:decimal-places="2"/>'
    "</number:date-style>" + open_files.style("ce", "table-cell", attributes='style:data-style-name="N1"')
    + open_files.style("ta", "table", '<style:table-properties table:display="true"/>'),
    parts=_OPEN_PARTS,
)  # fmt: skip
_XLSB: Final = binary_files.xlsb(
    {
        "S": binary_files.hidden_columns(2, 3)
        + binary_files.row(0, binary_files.string(0, "a", 1), binary_files.real(1, 0.5, 2), binary_files.packed(2, 7, hundredths=True))
        + binary_files.row(1, binary_files.cell(0, 7, bytes(4)), binary_files.cell(1, 3, b"\x2a"), binary_files.record(17, bytes(4) + binary_files.text("b")))
        + binary_files.merged(0, 1, 0, 1) + binary_files.FILTERED,
        "T": binary_files.row(0, binary_files.cell(0, 9, bytes(8), 1)),
    },
    strings=[binary_files.rich_text(("28", 0), ("3", 1))], formats=["[$-407]d. mmmm yyyy;@", "# ?/8"], since_1904=True,
    drawn=('<c:chart r:id="c"/>', {"c": ("chart", _CHART)}),
)  # fmt: skip
_PPT: Final = old_slide_files.ppt(
    [
        old_slide_files.OldSlide(
            [old_slide_files.group(old_slide_files.shape(old_slide_files.outline_text(0))),
             old_slide_files.shape(old_slide_files.text(4, "*", narrow=True, changing={0: 0x0FD8}), placeholder=8)],
            [(0, "T")], notes=[old_slide_files.shape(old_slide_files.text(2, "n"))], footer="F",
        ),
        old_slide_files.OldSlide(hidden=True),
    ],
    master=[old_slide_files.shape(old_slide_files.text(4, "Acme"))],
)  # fmt: skip
SEEDS: Final[Mapping[str, bytes]] = {
    "docx": _DOCX,
    "html": _HTML,
    "odp": _ODP,
    "ods": _ODS,
    "odt": _ODT,
    "ppt": _PPT,
    "pptx": _PPTX,
    "rtf": _RTF,
    "xls": _XLS,
    "xlsb": _XLSB,
    "xlsx": _XLSX,
    **text_seeds.SEEDS,
}


def damaged(data: bytes, file_format: str, random: Random) -> bytes:
    """Return a file with one to four things changed: elements and attributes, records, members or bytes."""
    for _ in range(random.randint(1, 4)):
        data = _DAMAGES[file_format](data, random)
    return data


def _archive(data: bytes, random: Random) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # noqa: BLE001 - it is damaged already
        return _bytes(data, random)
    if not parts or random.random() < 0.1:
        return _bytes(data, random)
    name, other = random.choice([*parts]), random.choice([*parts])
    kind = random.random()
    if kind < 0.7:
        is_binary = name.endswith(".bin")
        parts[name] = binary_files.damaged(parts[name], random, _INTEGERS) if is_binary else _xml(parts[name], random)
    elif kind < 0.8:
        parts[name] = _bytes(parts[name], random)
    elif kind < 0.9:
        parts[name] = parts[other]
    else:
        del parts[name]
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    return written.getvalue()


def _xml(data: bytes, random: Random) -> bytes:
    try:
        root = ET.fromstring(data)
    except ET.ParseError:
        return _bytes(data, random)
    elements = [*root.iter()]
    each, other = random.choice(elements), random.choice(elements)
    kind = random.randrange(8)
    if kind <= 2 and each.attrib:
        each.set(random.choice([*each.attrib]), random.choice([*VALUES, *other.attrib.values()]))
    elif kind == 3 and each.attrib:
        del each.attrib[random.choice([*each.attrib])]
    elif kind == 4 and len(each):
        each.remove(random.choice([*each]))
    elif kind == 5:
        each.text = random.choice(VALUES)
    elif kind == 6:
        each.tag, other.tag = other.tag, each.tag
    else:
        content = ET.tostring(other)
        depth = random.choice((1, 2, 300, _MAX_DEPTH))
        begin, end = f"<x xmlns='{each.tag[1:].partition('}')[0]}'>", "</x>"
        if len(content) * depth < 1_000_000:
            name = each.tag.rpartition("}")[2]
            begin, end = begin.replace("<x", f"<{name}"), f"</{name}>"
            each.append(ET.fromstring(begin * depth + content.decode() + end * depth))
    try:
        return ET.tostring(root)
    except RecursionError:
        return data


def _records(data: bytes, random: Random) -> bytes:
    """Damage one of the records, or their order."""
    records, position = [], 0
    while position + 4 <= len(data):
        kind, length = struct.unpack_from("<HH", data, position)
        records.append([kind, length, data[position + 4 : position + 4 + length]])
        position += 4 + length
    if not records or not data.startswith(b"\x09\x08") or random.random() < 0.2:
        return _bytes(data, random)
    each, other = random.choice(records), random.randrange(len(records))
    kind = random.randrange(5)
    if kind == 0:
        each[1] = random.choice(_INTEGERS) & 0xFFFF
    elif kind == 1:
        each[0] = records[other][0]
    elif kind == 2:
        each[2] = _bytes(each[2], random)
        each[1] = len(each[2])
    elif kind == 3:
        records.insert(other, each)
    else:
        records.remove(each)
    return b"".join(struct.pack("<HH", kind, length) + content for kind, length, content in records)


def _markup(data: bytes, random: Random) -> bytes:
    tags = [*_TAG.finditer(data)]
    if not tags or random.random() < 0.2:
        return _bytes(data, random)
    each, other = random.choice(tags), random.choice(tags)
    kind = random.randrange(4)
    if kind == 0:
        written = other[0] * random.choice((1, 2, 100))
    elif kind == 1:
        written = b""
    elif kind == 2:
        written = each[0][:-1] + b' %s="%s">' % (
            random.choice((b"style", b"colspan", b"start", b"class", b"value")),
            random.choice(VALUES).encode(),
        )
    else:
        written = re.sub(rb"[0-9a-z]+(?=\s|>)", lambda _: random.choice(VALUES).encode(), each[0])
    return data[: each.start()] + written + data[each.end() :]


def _control_words(data: bytes, random: Random) -> bytes:
    words = [*_WORD.finditer(data)]
    if not words or random.random() < 0.2:
        return _bytes(data, random)
    each, other = random.choice(words), random.choice(words)
    written = random.choice((b"", other[0], other[0] * 100, each[0] + b"-99999", each[0] + b"2147483648", b"{" * 100))
    return data[: each.start()] + written + data[each.end() :]


def _bytes(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at, end = sorted(random.randint(0, len(data)) for _ in range(2))
    kind = random.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[min(end, at + 100) :]
    if kind == 2:
        return data[:end] + data[at:end][:1000] + data[end:]
    if kind == 3:
        width = random.choice((1, 2, 4))
        return data[:at] + random.choice(_INTEGERS).to_bytes(4, "little")[:width] + data[at + width :]
    return data[:at] + random.randbytes(min(8, end - at)) + data[at + min(8, end - at) :]


def _lines(data: bytes, random: Random) -> bytes:
    """Damage one of the lines of a text, or their order."""
    lines = data.split(b"\n")
    if random.random() < 0.3:
        return _bytes(data, random)
    at, other = random.randrange(len(lines)), random.choice(lines)
    kind = random.randrange(4)
    if kind == 0:
        lines[at] = other
    elif kind == 1:
        lines[at:at] = [other] * random.choice((1, 50))
    elif kind == 2:
        del lines[at]
    else:
        lines[at] = re.sub(rb"[\w.-]+", lambda _: random.choice(VALUES).encode(), lines[at], count=random.randint(1, 3))
    return b"\n".join(lines)


_DAMAGES: Final = {
    **dict.fromkeys(text_seeds.SEEDS, _lines),
    "docx": _archive,
    "epub": _archive,
    "html": _markup,
    "doc": _bytes,
    "msg": _bytes,
    "odp": _archive,
    "ods": _archive,
    "odt": _archive,
    "ppt": old_slide_files.damaged,
    "pptx": _archive,
    "rtf": _control_words,
    "xls": _records,
    "xlsb": _archive,
    "xlsx": _archive,
}
