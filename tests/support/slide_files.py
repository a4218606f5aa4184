"""PowerPoint presentations, written by hand, so that tests decide about each element."""

# ruff: noqa: E501 - XML

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.office_files import DRAWING_SPACES, STRICT, TRANSITIONAL, links, package

MATH: Final = (
    '<mc:AlternateContent><mc:Choice Requires="a14"><a14:m xmlns:a14="a14" xmlns:m="m"><m:oMath>{}</m:oMath></a14:m></mc:Choice>'
    "<mc:Fallback><a:r><a:t>picture of a formula</a:t></a:r></mc:Fallback></mc:AlternateContent>"
)


@dataclass(frozen=True)
class Slide:
    """A slide to write.

    Attributes:
        shapes: The XML of its shapes.
        attributes: Of its root element.
        notes: The XML of the shapes of its page of notes.
        drawn: The kind and the XML of charts, diagrams and comments, by the id of their relationship.
    """

    shapes: str
    attributes: str = ""
    notes: str = ""
    drawn: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def pptx(
    slides: Sequence[Slide], *, layout: str = "", master: str = "", styles: str = "", edition: str = TRANSITIONAL
) -> bytes:
    """Return a presentation.

    Args:
        slides: In their order.
        layout: The XML of the shapes of the layout of all slides.
        master: That of its master.
        styles: The XML of the styles of the master's texts.
        edition: Of the standard.
    """
    main = f"{edition}/presentationml/{'2006/main' if edition == TRANSITIONAL else 'main'}"
    spaces = f'xmlns:p="{main}" {DRAWING_SPACES}'
    if edition == STRICT:
        spaces = spaces.replace(f"{TRANSITIONAL}/drawingml/2006", f"{STRICT}/drawingml").replace(
            f"{TRANSITIONAL}/officeDocument/2006", f"{STRICT}/officeDocument"
        )
    listed = "".join(f'<p:sldId id="{256 + number}" r:id="s{number}"/>' for number in range(len(slides)))
    written: dict[str, str | bytes] = {
        "_rels/.rels": links({"r": ("officeDocument", "ppt/presentation.xml")}, edition),
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldMasterIdLst><p:sldMasterId r:id='m'/></p:sldMasterIdLst>"
        f"<p:sldIdLst>{listed}</p:sldIdLst><p:sldSz cx='9144000' cy='6858000'/></p:presentation>",
        "ppt/_rels/presentation.xml.rels": links(
            {f"s{number}": ("slide", f"slides/slide{number}.xml") for number in range(len(slides))}
            | {"m": ("slideMaster", "slideMasters/master.xml")},
            edition,
        ),
        "ppt/slideLayouts/layout.xml": _tree("sldLayout", spaces, layout),
        "ppt/slideLayouts/_rels/layout.xml.rels": links({"m": ("slideMaster", "../slideMasters/master.xml")}, edition),
        "ppt/slideMasters/master.xml": _tree("sldMaster", spaces, master, f"<p:txStyles>{styles}</p:txStyles>"),
    }
    for number, slide in enumerate(slides):
        targets = {"l": ("slideLayout", "../slideLayouts/layout.xml")}
        if slide.notes:
            targets["n"] = ("notesSlide", f"../notesSlides/notes{number}.xml")
            written[f"ppt/notesSlides/notes{number}.xml"] = _tree("notes", spaces, slide.notes)
        for own, (kind, content) in slide.drawn.items():
            targets[own] = (kind, f"../drawn/{number}{own}.xml")
            written[f"ppt/drawn/{number}{own}.xml"] = content
        written[f"ppt/slides/_rels/slide{number}.xml.rels"] = links(targets, edition)
        written[f"ppt/slides/slide{number}.xml"] = _tree("sld", f"{spaces} {slide.attributes}", slide.shapes)
    return package(written)


def _tree(name: str, attributes: str, shapes: str, after: str = "") -> str:
    return f"<p:{name} {attributes}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>{after}</p:{name}>"


def shape(
    *paragraphs: str, kind: str | None = None, index: int | None = None, hidden: bool = False, styles: str = ""
) -> str:
    """Return a shape with texts, or with the XML of paragraphs; *kind* and *index* are those of a placeholder."""
    holder = (
        "" if kind is None else f'<p:ph type="{kind}"{"" if index is None else f" idx={chr(34)}{index}{chr(34)}"}/>'
    )
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="S"{" hidden=" + chr(34) + "1" + chr(34) if hidden else ""}/><p:nvPr>{holder}</p:nvPr></p:nvSpPr>'
        f"<p:txBody><a:bodyPr/><a:lstStyle>{styles}</a:lstStyle>"
        f"{''.join(each if each.startswith('<a:p>') else paragraph(each) for each in paragraphs)}</p:txBody></p:sp>"
    )


def paragraph(*runs: str, level: int = 0, bullet: str = "") -> str:
    """Return a paragraph of texts, or of the XML of runs."""
    inner = "".join(run if run.startswith("<") else f"<a:r><a:t>{run}</a:t></a:r>" for run in runs)
    return f'<a:p><a:pPr lvl="{level}">{bullet}</a:pPr>{inner}</a:p>'


def frame(content: str) -> str:
    """Return a frame around a table, a chart or a diagram."""
    return f"<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id='3' name='F'/></p:nvGraphicFramePr><a:graphic><a:graphicData>{content}</a:graphicData></a:graphic></p:graphicFrame>"


def cells(*rows: Sequence[str]) -> str:
    """Return a table of texts, or of the XML of cells."""
    written = ""
    for row in rows:
        texts = (
            each if each.startswith("<a:tc") else f"<a:tc><a:txBody>{paragraph(each)}</a:txBody></a:tc>" for each in row
        )
        written += f"<a:tr>{''.join(texts)}</a:tr>"
    return frame(f"<a:tbl>{written}</a:tbl>")


PICTURE: Final = "<p:pic><p:nvPicPr><p:cNvPr id='4' name='P' descr='not shown'/></p:nvPicPr><p:blipFill><a:blip r:embed='i'/></p:blipFill></p:pic>"
