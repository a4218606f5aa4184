"""The texts of shapes, diagrams and charts are read where they are."""

# ruff: noqa: E501 - XML

import pytest

from ragstack_common.reading import charts
from ragstack_common.reading.sheets import sheet, workbooks
from ragstack_common.reading.word import document
from tests.support.office_files import DRAWING_SPACES, docx, p, rows, xlsx

COSTS = "| Month | in euros Revenue | share Margin |\n| --- | --- | --- |\n| Jan 2026 | 1,000 € | 2.5% low |\n| Feb 2026 | #N/A | 12.5% |"


def cache(kind: str, *points: object, code: str = "") -> str:
    written = "".join(f'<c:pt idx="{place}"><c:v>{point}</c:v></c:pt>' for place, point in enumerate(points))
    return f"<c:{kind}Ref><c:f>S!A1</c:f><c:{kind}Cache>{f'<c:formatCode>{code}</c:formatCode>' if code else ''}{written}</c:{kind}Cache></c:{kind}Ref>"


def series(name: str, categories: str, values: str, inner: str = "", across: str = "cat", up: str = "val") -> str:
    along = f"<c:{across}>{categories}</c:{across}>" if categories else ""
    return f"<c:ser><c:tx>{cache('str', name)}</c:tx>{inner}{along}<c:{up}>{values}</c:{up}></c:ser>"


def axis(kind: str, own: int, title: str, inner: str = "") -> str:
    return f'<c:{kind}><c:axId val="{own}"/>{inner}{rich(title)}</c:{kind}>'


def rich(*runs: str) -> str:
    each = "".join(f"<a:r><a:t>{run}</a:t></a:r>" for run in runs)
    return f"<c:title><c:tx><c:rich><a:bodyPr/><a:p>{each}</a:p></c:rich></c:tx></c:title>"


def chart(title: str, area: str) -> str:
    return f"<c:chartSpace {DRAWING_SPACES}><c:chart>{title}<c:plotArea>{area}</c:plotArea></c:chart></c:chartSpace>"


MONTHS = cache("num", 46023, 46054, code="mmm yyyy")
LABEL = '<c:dLbls><c:dLbl><c:idx val="0"/><c:tx><c:rich><a:p><a:fld type="VALUE"><a:t>[VALUE]</a:t></a:fld><a:r><a:t>low</a:t></a:r></a:p></c:rich></c:tx></c:dLbl></c:dLbls>'
TWO_AXES = chart(
    rich("Revenue ", "and margin"),
    f'<c:barChart>{series("Revenue", MONTHS, cache("num", 1000, "#N/A", code="#,##0 &quot;€&quot;"))}<c:axId val="2"/><c:axId val="1"/></c:barChart>'
    f'<c:lineChart>{series("Margin", "", cache("num", 0.025, 0.125), LABEL)}<c:axId val="3"/><c:axId val="4"/></c:lineChart>'.replace("<c:val>", f"<c:cat>{MONTHS}</c:cat><c:val>")
    + axis("dateAx", 1, "Month") + axis("valAx", 2, "in euros") + axis("catAx", 3, "gone", '<c:delete val="1"/>')
    + axis("valAx", 4, "share", '<c:numFmt formatCode="0.0%" sourceLinked="0"/>'),
)  # fmt: skip
REFERENCE = '<w:r><w:drawing><w:inline><w:docPr id="1"/><w:graphic><w:graphicData><c:chart xmlns:c="c" r:id="c1"/></w:graphicData></w:graphic></w:inline></w:drawing></w:r>'


def written(root: str) -> str:
    """Return the text of a document with nothing but a chart."""
    return document.read(docx(p(REFERENCE), files={"c1": ("chart", "charts/chart1.xml", root.encode())}))


def test_a_chart_is_a_table_with_a_column_for_each_series() -> None:
    assert written(TWO_AXES) == f"Revenue and margin\n\n{COSTS}"


def test_a_chart_follows_its_paragraph_and_the_table_around_it() -> None:
    files = {"c1": ("chart", "charts/chart1.xml", TWO_AXES.encode())}
    cells = "".join(f"<w:tc>{p(text)}</w:tc>" for text in ("a", "b"))
    table = f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"

    assert (
        document.read(docx(p("See", REFERENCE, ":") + p("End."), files=files))
        == f"See:\n\nRevenue and margin\n\n{COSTS}\n\nEnd."
    )
    found = document.read(
        docx(
            table.replace('<w:t xml:space="preserve">b</w:t>', "<w:t>b</w:t>" + REFERENCE[5:-6], 1) + p("End."),
            files=files,
        )
    )
    assert found == f"| a | b |\n| --- | --- |\n| a | b |\n\nRevenue and margin\n\n{COSTS}\n\nEnd."


def test_a_hidden_chart_is_not_read() -> None:
    hidden = REFERENCE.replace('id="1"/>', 'id="1" hidden="1"/>')

    assert document.read(docx(p("a", hidden), files={"c1": ("chart", "c.xml", TWO_AXES.encode())})) == "a"


def test_points_that_cross_are_a_table_for_each_series() -> None:
    first, second = (
        series(name, cache("num", *across), cache("num", 1, 4), across="xVal", up="yVal")
        for name, across in (("pump", (1, 2)), ("fan", (1, 3)))
    )

    assert written(chart("", f"<c:scatterChart>{first}{second}</c:scatterChart>")) == (
        "| | pump |\n| --- | --- |\n| 1 | 1 |\n| 2 | 4 |\n\n| | fan |\n| --- | --- |\n| 1 | 1 |\n| 3 | 4 |"
    )


def test_categories_can_have_levels_and_are_numbered_without_texts() -> None:
    levels = (
        "<c:multiLvlStrRef><c:multiLvlStrCache>"
        + "".join(
            "<c:lvl>" + "".join(f'<c:pt idx="{place}"><c:v>{text}</c:v></c:pt>' for place, text in level) + "</c:lvl>"
            for level in ([(0, "Q1"), (1, "Q2"), (2, "Q1")], [(0, 2025), (2, 2026)])
        )
        + "</c:multiLvlStrCache></c:multiLvlStrRef>"
    )
    values = cache("num", 1, 2, 3)

    assert written(chart("", f"<c:barChart>{series('a', levels, values)}</c:barChart>")) == (
        "| | a |\n| --- | --- |\n| 2025 Q1 | 1 |\n| 2025 Q2 | 2 |\n| 2026 Q1 | 3 |"
    )
    assert written(chart("", f"<c:barChart>{series('a', '', values)}</c:barChart>")).endswith(
        "| 1 | 1 |\n| 2 | 2 |\n| 3 | 3 |"
    )


def test_labels_from_cells_follow_their_values() -> None:
    labels = (
        '<c:extLst><c:ext><c15:datalabelsRange xmlns:c15="c15"><c15:f>S!C1</c15:f><c15:dlblRangeCache><c:pt idx="1"><c:v>record</c:v></c:pt>'
        "</c15:dlblRangeCache></c15:datalabelsRange></c:ext></c:extLst>"
    )
    one = series("a", "", cache("num", 1, 2)).replace("</c:ser>", f"{labels}</c:ser>")

    assert written(chart("", f"<c:barChart>{one}</c:barChart>")).endswith("| 1 | 1 |\n| 2 | 2 record |")


def test_charts_of_office_2016_are_tables() -> None:
    points = "".join(f'<cx:pt idx="{place}">{text}</cx:pt>' for place, text in enumerate(("Start", "Rent")))
    numbers = '<cx:pt idx="0">1000</cx:pt><cx:pt idx="1">-250</cx:pt>'
    root = (
        f'<cx:chartSpace {DRAWING_SPACES}><cx:chartData><cx:data id="0"><cx:strDim type="cat"><cx:lvl>{points}</cx:lvl></cx:strDim>'
        f'<cx:numDim type="val"><cx:lvl formatCode="#,##0">{numbers}</cx:lvl></cx:numDim></cx:data></cx:chartData>'
        "<cx:chart><cx:title><cx:tx><cx:txData><cx:v>Cash</cx:v></cx:txData></cx:tx></cx:title><cx:plotArea><cx:plotAreaRegion>"
        '<cx:series layoutId="waterfall"><cx:tx><cx:txData><cx:v>Flow</cx:v></cx:txData></cx:tx><cx:dataId val="0"/></cx:series>'
        "</cx:plotAreaRegion></cx:plotArea></cx:chart></cx:chartSpace>"
    )

    assert written(root) == "Cash\n\n| | Flow |\n| --- | --- |\n| Start | 1,000 |\n| Rent | -250 |"


def test_a_chart_of_endless_points_is_refused() -> None:
    many = "".join(
        f'<c:ser><c:val><c:numLit><c:pt idx="{place}"><c:v>1</c:v></c:pt></c:numLit></c:val></c:ser>'
        for place in range(1_200)
    )

    with pytest.raises(MemoryError):
        written(chart("", f"<c:barChart>{many}</c:barChart>"))
    assert charts.MAX_CELLS < 1_200**2


def test_a_diagram_is_a_list_in_the_order_in_which_it_is_drawn() -> None:
    texts = {"a": "Board", "c": "Sales", "b": "Finance", "d": "Payroll"}
    points = '<dgm:pt modelId="0" type="doc"/>' + "".join(
        f'<dgm:pt modelId="{own}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for own, text in texts.items()
    )
    connections = "".join(
        f'<dgm:cxn srcId="{above}" destId="{below}" srcOrd="{place}"/>'
        for above, below, place in (("0", "a", 0), ("a", "c", 1), ("a", "b", 0), ("b", "d", 0), ("d", "b", 0))
    )
    data = f"<dgm:dataModel {DRAWING_SPACES}><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{connections}</dgm:cxnLst></dgm:dataModel>"
    reference = '<w:r><w:drawing><dgm:relIds xmlns:dgm="d" r:dm="d1"/></w:drawing></w:r>'

    found = document.read(docx(p("Who:", reference), files={"d1": ("diagramData", "d.xml", data.encode())}))

    assert found == "Who:\n\n- Board\n  - Finance\n    - Payroll\n  - Sales"


def test_what_lies_on_a_sheet_follows_its_cells() -> None:
    def shape(text: str, hidden: int = 0) -> str:
        return f"<xdr:sp><xdr:nvSpPr><xdr:cNvPr hidden='{hidden}'/></xdr:nvSpPr><xdr:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"

    drawing = (
        f"<xdr:twoCellAnchor><xdr:grpSp>{shape('Stop: 7714')}{shape('secret', 1)}</xdr:grpSp></xdr:twoCellAnchor>"
        f"<mc:AlternateContent><mc:Choice>{shape('x² + 1')}</mc:Choice><mc:Fallback>{shape('no formula')}</mc:Fallback></mc:AlternateContent>"
        '<xdr:graphicFrame><a:graphic><a:graphicData><c:chart r:id="c1"/></a:graphicData></a:graphic></xdr:graphicFrame>'
    )
    data = xlsx({"S": rows(["a", "b"])}, drawing=drawing, drawn={"c1": ("chart", TWO_AXES)})

    found = sheet.text(workbooks.XlsxWorkbook(data).sheets())

    assert found == f"## S\n\n| a | b |\n| --- | --- |\n\nStop: 7714\n\nx² + 1\n\nRevenue and margin\n\n{COSTS}"
