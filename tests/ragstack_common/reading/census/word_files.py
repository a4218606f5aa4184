"""Word documents whose words are in every place that the format has for them."""

# ruff: noqa: E501 - XML

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.support.office_files import DRAWING_SPACES, STRICT, TRANSITIONAL, docx, p, r

_HIDDEN: Final = "<w:vanish/>"
_STYLES: Final = (
    '<w:style w:type="character" w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="Deeper"><w:basedOn w:val="Secret"/></w:style>'
    '<w:style w:type="character" w:styleId="Open"><w:basedOn w:val="Secret"/><w:rPr><w:vanish w:val="0"/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/></w:style>'
)
_NUMBERING: Final = (
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
)
_IN_LIST: Final = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
_DEEPEST: Final = 3


class _Word:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()
        self.parts = {"st": ("styles", _STYLES), "nu": ("numbering", _NUMBERING)}
        self.files: dict[str, tuple[str, str, bytes]] = {}
        self._notes: dict[str, list[str]] = {"footnote": [], "endnote": []}
        self._comments: list[str] = []
        self._inline: list[Callable[[], str]] = [
            self._run, self._simple_field, self._field, self._hyperlink, self._inserted, self._moved, self._control,
            self._ruby, self._formula, self._hidden, self._deleted, self._commented, self._revealed,
        ]  # fmt: skip
        self._in_body: list[Callable[[], str]] = [self._note, self._chart, self._diagram, self._gone_note]

    def bytes(self) -> bytes:
        body = p(self._run()) + self._blocks(0, in_body=True) + self._section()
        separator = '<w:footnote w:id="-1" w:type="separator"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
        for kind, notes in self._notes.items():
            if notes:
                self.parts[kind] = (f"{kind}s", (separator if kind == "footnote" else "") + "".join(notes))
        if self._comments:
            self.parts["co"] = ("comments", "".join(self._comments))
        edition = self._draw(st.sampled_from((TRANSITIONAL, STRICT)))
        return docx(body, self.parts, files=self.files, edition=edition)

    def _choose(self, *choices: Callable[[], str]) -> str:
        return self._draw(st.sampled_from(choices))()

    def _one_of(self, *texts: str) -> str:
        return self._draw(st.sampled_from(texts))

    def _blocks(self, depth: int, *, in_body: bool) -> str:
        kinds: list[Callable[[], str]] = [lambda: self._paragraph(in_body=in_body)] * 3
        if depth < _DEEPEST:
            kinds += [
                lambda: self._table(depth, in_body=in_body),
                lambda: (
                    f"<w:sdt><w:sdtPr/><w:sdtContent>{self._blocks(depth + 1, in_body=in_body)}</w:sdtContent></w:sdt>"
                ),
                lambda: p(self._text_box(depth)),
            ]
        if in_body and depth == 0:
            kinds.append(self._other_file)
        return "".join(self._choose(*kinds) for _ in range(self._draw(st.integers(1, 4))))

    def _paragraph(self, *, in_body: bool) -> str:
        kinds = self._inline + (self._in_body if in_body else [])
        runs = [self._choose(*kinds) for _ in range(self._draw(st.integers(1, 3)))]
        style, properties = self._draw(st.sampled_from([(None, ""), ("Heading2", ""), (None, _IN_LIST)]))
        return p(*(part for run in runs for part in (run, r(" "))), style=style, properties=properties)

    def _run(self) -> str:
        return r(f"{self.marks.show()} and {self.marks.show()}")

    def _simple_field(self) -> str:
        return f'<w:fldSimple w:instr=" REF {self.marks.hide()} ">{r(self.marks.show())}</w:fldSimple>'

    def _field(self) -> str:
        nested = self._field() if self._draw(st.integers(0, 4)) == 0 else r(self.marks.show())
        return (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            f'<w:r><w:instrText> HYPERLINK "{self.marks.hide()}" </w:instrText></w:r>'
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{nested}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        )

    def _hyperlink(self) -> str:
        return f'<w:hyperlink w:anchor="{self.marks.hide()}">{r(self.marks.show())}</w:hyperlink>'

    def _inserted(self) -> str:
        return f'<w:ins w:author="A">{r(self.marks.show())}</w:ins>'

    def _moved(self) -> str:
        return f"<w:moveFrom>{r(self.marks.hide('deleted passages'))}</w:moveFrom> <w:moveTo>{r(self.marks.show())}</w:moveTo>"

    def _control(self) -> str:
        listed = f'<w:dropDownList><w:listItem w:displayText="{self.marks.hide()}"/></w:dropDownList>'
        return f"<w:sdt><w:sdtPr>{listed}</w:sdtPr><w:sdtContent>{r(self.marks.show())}</w:sdtContent></w:sdt>"

    def _ruby(self) -> str:
        reading, base = r(self.marks.show()), r(self.marks.show())
        return f"<w:r><w:ruby><w:rt>{reading}</w:rt><w:rubyBase>{base}</w:rubyBase></w:ruby></w:r>"

    def _formula(self) -> str:
        above, below = (f"<m:r><m:t>{self.marks.show()}</m:t></m:r>" for _ in range(2))
        inner = self._one_of(
            f"<m:f><m:num>{above}</m:num><m:den>{below}</m:den></m:f>",
            f"<m:sSup><m:e>{above}</m:e><m:sup>{below}</m:sup></m:sSup>",
            f"<m:rad><m:deg>{above}</m:deg><m:e>{below}</m:e></m:rad>",
            f"<m:nary><m:sub>{above}</m:sub><m:sup/><m:e>{below}</m:e></m:nary>",
            f"<m:d><m:e>{above}</m:e><m:e>{below}</m:e></m:d>",
        )
        return f"<m:oMath>{inner}</m:oMath>"

    def _hidden(self) -> str:
        style = self._one_of(_HIDDEN, '<w:rStyle w:val="Secret"/>', '<w:rStyle w:val="Deeper"/>')
        return r(self.marks.hide("hidden passages"), style)

    def _revealed(self) -> str:
        return r(
            self.marks.show(),
            self._one_of('<w:rStyle w:val="Open"/>', '<w:rStyle w:val="Secret"/><w:vanish w:val="0"/>'),
        )

    def _deleted(self) -> str:
        return f"<w:del><w:r><w:delText>{self.marks.hide('deleted passages')}</w:delText></w:r></w:del>"

    def _commented(self) -> str:
        own = len(self._comments)
        self._comments.append(f'<w:comment w:id="{own}">{p(self.marks.hide("comments"))}</w:comment>')
        return (
            f'<w:commentRangeStart w:id="{own}"/>{r(self.marks.show())}<w:commentRangeEnd w:id="{own}"/>'
            f'<w:r><w:commentReference w:id="{own}"/></w:r>'
        )

    def _note(self) -> str:
        kind = self._one_of("footnote", "endnote")
        own = len(self._notes[kind]) + 1
        self._notes[kind].append("")
        part, self.marks.part = self.marks.part, "notes"
        self._notes[kind][-1] = f'<w:{kind} w:id="{own}">{self._blocks(_DEEPEST, in_body=False)}</w:{kind}>'
        self.marks.part = part
        return f'<w:r><w:{kind}Reference w:id="{own}"/></w:r>'

    def _gone_note(self) -> str:
        """A note whose reference is hidden, deleted, or not there."""
        own = len(self._notes["footnote"]) + 1
        self._notes["footnote"].append(f'<w:footnote w:id="{own}">{p(self.marks.hide())}</w:footnote>')
        reference = f'<w:r><w:rPr>%s</w:rPr><w:footnoteReference w:id="{own}"/></w:r>'
        kind = self._one_of("hidden", "deleted", "nowhere")
        return {"hidden": reference % _HIDDEN, "deleted": f"<w:del>{reference % ''}</w:del>", "nowhere": r(" ")}[kind]

    def _text_box(self, depth: int) -> str:
        hides = self._draw(st.integers(0, 3)) == 0
        inner = p(self.marks.hide("hidden passages")) if hides else self._blocks(depth + 1, in_body=False)
        box = f"<w:txbxContent>{inner}</w:txbxContent>"
        drawing = (
            f'<w:drawing><wp:inline xmlns:wp="urn:wp"><wp:docPr id="1" name="Box"{" hidden=" + chr(34) + "1" + chr(34) if hides else ""}/>'
            f"<wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></wp:inline></w:drawing>"
        )
        vml = f"<w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict>"
        alternatives = f'<mc:AlternateContent><mc:Choice Requires="wps">{drawing}</mc:Choice><mc:Fallback>{vml}</mc:Fallback></mc:AlternateContent>'
        return (
            f"<w:r>{self._one_of(drawing, alternatives) if hides else self._one_of(drawing, alternatives, vml)}</w:r>"
        )

    def _drawn(self, kind: str, root: str, reference: str) -> str:
        own = f"d{len(self.files)}"
        self.files[own] = (kind, f"{own}.xml", root.encode())
        return f"<w:r><w:drawing {DRAWING_SPACES}><a:graphic><a:graphicData>{reference.format(own)}</a:graphicData></a:graphic></w:drawing></w:r>"

    def _chart(self) -> str:
        part, self.marks.part = self.marks.part, "charts and diagrams"
        drawn = self._drawn("chart", chart(self.marks), '<c:chart r:id="{}"/>')
        self.marks.part = part
        return drawn

    def _diagram(self) -> str:
        part, self.marks.part = self.marks.part, "charts and diagrams"
        drawn = self._drawn("diagramData", diagram(self.marks), '<dgm:relIds r:dm="{}"/>')
        self.marks.part = part
        return drawn

    def _table(self, depth: int, *, in_body: bool) -> str:
        rows = ""
        merges = self._draw(st.booleans())
        for number in range(self._draw(st.integers(1, 3))):
            kind = self._one_of("", "", "", "del", "hidden")
            if kind:
                what = "deleted passages" if kind == "del" else "hidden passages"
                rows += f"<w:tr><w:trPr><w:{kind}/></w:trPr><w:tc>{p(self.marks.hide(what))}</w:tc></w:tr>"
                continue
            cells = ""
            for column in range(self._draw(st.integers(1, 3))):
                span = '<w:gridSpan w:val="2"/>' if self._draw(st.integers(0, 3)) == 0 else ""
                merged = (
                    f'<w:vMerge w:val="{"restart" if number == 0 else "continue"}"/>' if merges and column == 0 else ""
                )
                inner = p() if merged and number else self._blocks(depth + 1, in_body=in_body)
                cells += f"<w:tc><w:tcPr>{span if not merged else ''}{merged}</w:tcPr>{inner}</w:tc>"
            rows += f"<w:tr>{cells}</w:tr>"
        return f"<w:tbl><w:tblPr/><w:tblGrid/>{rows}</w:tbl>"

    def _other_file(self) -> str:
        own = f"f{len(self.files)}"
        ending = self._one_of("html", "txt", "docx", "mht", "rtf", "odt")
        part, self.marks.part = self.marks.part, f"file {own}.{ending}"
        if ending == "odt":
            data = self.marks.hide().encode()
            self.marks.unread.add(self.marks.part)
        elif ending == "rtf":
            data = rb"{\rtf1 " + self.marks.show().encode() + rb"{\v " + self.marks.hide().encode() + b"}}"
        elif ending == "docx":
            note = f'<w:footnote w:id="1">{p(self.marks.show())}</w:footnote>'
            reference = '<w:r><w:footnoteReference w:id="1"/></w:r>'
            data = docx(
                p(self.marks.show(), reference, self._hidden()), {"fn": ("footnotes", note), "st": self.parts["st"]}
            )
        elif ending == "mht":
            data = f"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>{self.marks.show()}</p>".encode()
        else:
            data = (f"<p>{self.marks.show()}</p>" if ending == "html" else self.marks.show()).encode()
        self.marks.part = part
        self.files[own] = ("aFChunk", f"{own}.{ending}", data)
        return f'<w:altChunk r:id="{own}"/>'

    def _section(self) -> str:
        """Return the last section, with the headers and footers that some of its pages show."""
        references = ""
        has_first, has_even = self._draw(st.booleans()), self._draw(st.booleans())
        shown = {"default": True, "first": has_first, "even": has_even}
        if has_even:
            self.parts["se"] = ("settings", "<w:evenAndOddHeaders/>")
        self.marks.part = "headers and footers"
        for which in self._draw(st.lists(st.sampled_from([*shown]), unique=True)):
            kind = self._one_of("header", "footer")
            own = f"{kind}{which}"
            content = self._blocks(_DEEPEST - 1, in_body=False) if shown[which] else p(self.marks.hide())
            number = f'<w:fldSimple w:instr=" PAGE ">{r(self.marks.hide())}</w:fldSimple>'
            self.parts[own] = (kind, content + p(number))
            references += f'<w:{kind}Reference w:type="{which}" r:id="{own}"/>'
        return f"<w:sectPr>{references}{'<w:titlePg/>' if has_first else ''}</w:sectPr>"


def chart(marks: Marks) -> str:
    """Return a chart with a title, categories, a series that is drawn, and one that is filtered out."""
    title = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{marks.show()}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    series = (
        '<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{}</c:v></c:pt></c:strCache></c:strRef></c:tx>'
        '<c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>{}</c:v></c:pt></c:strCache></c:strRef></c:cat>'
        '<c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>5</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>'
    )
    filtered = f"<c:extLst><c:ext>{series.format(marks.hide(), marks.hide())}</c:ext></c:extLst>"
    label = '<c:dLbl><c:idx val="0"/><c:tx><c:rich><a:p><a:fld type="CELLRANGE"><a:t>{}</a:t></a:fld></a:p></c:rich></c:tx></c:dLbl>'
    drawn = series.format(marks.show(), marks.show()).replace(
        "<c:cat>", f"<c:dLbls>{label.format(marks.hide())}</c:dLbls><c:cat>"
    )
    return (
        f"<c:chartSpace {DRAWING_SPACES}><c:chart>{title}<c:plotArea><c:barChart>{drawn}{filtered}"
        '<c:axId val="1"/><c:axId val="2"/></c:barChart></c:plotArea></c:chart></c:chartSpace>'
    )


def diagram(marks: Marks) -> str:
    """Return a diagram of two points below its root."""
    point = '<dgm:pt modelId="{}"><dgm:t><a:p><a:r><a:t>{}</a:t></a:r></a:p></dgm:t></dgm:pt>'
    return (
        f'<dgm:dataModel {DRAWING_SPACES}><dgm:ptLst><dgm:pt modelId="0" type="doc"/>{point.format(1, marks.show())}'
        f'{point.format(2, marks.show())}</dgm:ptLst><dgm:cxnLst><dgm:cxn srcId="0" destId="1" srcOrd="0"/>'
        '<dgm:cxn srcId="1" destId="2" srcOrd="0"/></dgm:cxnLst></dgm:dataModel>'
    )


@st.composite
def word_files(draw: st.DrawFn) -> MarkedFile:
    """Word documents of any structure."""
    word = _Word(draw)
    return MarkedFile(word.bytes(), "docx", word.marks)
