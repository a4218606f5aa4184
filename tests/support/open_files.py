"""OpenDocument files, written by hand, so that tests decide about each element."""

# ruff: noqa: E501 - XML

import io
import zipfile
from collections.abc import Mapping
from typing import Final

_OASIS: Final = "urn:oasis:names:tc:opendocument:xmlns"
_PREFIXES: Final = {
    "office": "office", "style": "style", "text": "text", "table": "table", "draw": "drawing", "chart": "chart", "form": "form",
    "presentation": "presentation", "number": "datastyle", "fo": "xsl-fo-compatible", "svg": "svg-compatible",
}  # fmt: skip
SPACES: Final = (
    " ".join(f'xmlns:{prefix}="{_OASIS}:{name}:1.0"' for prefix, name in _PREFIXES.items())
    + ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:math="http://www.w3.org/1998/Math/MathML"'
)


def open_document(
    kind: str, body: str, *, automatic: str = "", common: str = "", masters: str = "", in_masters: str = "",
    parts: Mapping[str, str] | None = None, manifest: str = "<manifest/>",
) -> bytes:  # fmt: skip
    """Return a file.

    Args:
        kind: ``text``, ``presentation`` or ``spreadsheet``.
        body: The XML of its content.
        automatic: Styles of the content.
        common: Styles with names that people see.
        masters: The XML of its master pages.
        in_masters: Styles of the master pages.
        parts: The XML of charts and formulas, by the name of their folder.
        manifest: The XML of the list of parts.
    """
    written = {
        "content.xml": f"<office:document-content {SPACES}><office:automatic-styles>{automatic}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        "styles.xml": f"<office:document-styles {SPACES}><office:styles>{common}</office:styles><office:automatic-styles>{in_masters}"
        f"</office:automatic-styles><office:master-styles>{masters}</office:master-styles></office:document-styles>",
        "META-INF/manifest.xml": manifest,
    }
    written |= {f"{name}/content.xml": content for name, content in (parts or {}).items()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        for name, content in written.items():
            archive.writestr(name, content)
    return made.getvalue()


def p(*parts: str, style: str = "", name: str = "p", attributes: str = "") -> str:
    """Return a paragraph, or with the name ``h`` a heading."""
    return f'<text:{name} text:style-name="{style}" {attributes}>{"".join(parts)}</text:{name}>'


def listed(*items: str, style: str = "", attributes: str = "") -> str:
    """Return a list of items with the XML of their content."""
    named = f'text:style-name="{style}"' if style else ""
    return f"<text:list {named} {attributes}>{''.join(f'<text:list-item>{each}</text:list-item>' for each in items)}</text:list>"


def note(mark: str, content: str, kind: str = "footnote") -> str:
    return f'<text:note text:note-class="{kind}"><text:note-citation>{mark}</text:note-citation><text:note-body>{content}</text:note-body></text:note>'


def box(content: str, attributes: str = "") -> str:
    """Return a frame with a text box."""
    return (
        f"<draw:frame {attributes}><draw:text-box>{content}</draw:text-box><svg:desc>not shown</svg:desc></draw:frame>"
    )


def drawn(name: str, attributes: str = "") -> str:
    """Return a frame with a chart or a formula, and the picture of it that other programs show."""
    return f'<draw:frame {attributes}><draw:object xlink:href="./{name}"/><draw:image xlink:href="./replacement"/></draw:frame>'


def chart(title: str, axis: str, header: str, rows: str) -> str:
    """Return a chart with the rows of its table."""
    return (
        f"<office:document-content {SPACES}><office:body><office:chart><chart:chart><chart:title><text:p>{title}</text:p></chart:title>"
        f'<chart:plot-area><chart:axis chart:dimension="y"><chart:title><text:p>{axis}</text:p></chart:title></chart:axis></chart:plot-area>'
        f'<table:table table:name="local-table"><table:table-header-rows>{header}</table:table-header-rows><table:table-rows>{rows}'
        "</table:table-rows></table:table></chart:chart></office:chart></office:body></office:document-content>"
    )


def formula(content: str) -> str:
    return f"<math:math {SPACES}><math:semantics>{content}<math:annotation>a over b</math:annotation></math:semantics></math:math>"


def row(*cells: str, attributes: str = "") -> str:
    """Return a row of a table: texts, or the XML of cells."""
    written = "".join(
        each if each.startswith("<table:") else f"<table:table-cell><text:p>{each}</text:p></table:table-cell>"
        for each in cells
    )
    return f"<table:table-row {attributes}>{written}</table:table-row>"


def table(name: str, *rows: str, columns: str = "", attributes: str = "", shapes: str = "") -> str:
    """Return a sheet."""
    held = f"<table:shapes>{shapes}</table:shapes>" if shapes else ""
    return f'<table:table table:name="{name}" {attributes}>{held}{columns}{"".join(rows)}</table:table>'


def cell(shown: str, kind: str = "string", value: str = "", attributes: str = "") -> str:
    """Return a cell with a value, beside which stands what it shows."""
    name = {"date": "date-value", "time": "time-value", "boolean": "boolean-value"}.get(kind, "value")
    stored = f'office:value-type="{kind}"' + (f' office:{name}="{value}"' if value else "")
    return f"<table:table-cell {stored} {attributes}>{f'<text:p>{shown}</text:p>' if shown else ''}</table:table-cell>"


def slide(shapes: str, style: str = "", attributes: str = "", notes: str = "") -> str:
    """Return a slide of a presentation."""
    return f'<draw:page draw:style-name="{style}" draw:master-page-name="M" {attributes}>{shapes}<presentation:notes>{notes}</presentation:notes></draw:page>'


def style(name: str, family: str, properties: str = "", attributes: str = "") -> str:
    return f'<style:style style:name="{name}" style:family="{family}" {attributes}>{properties}</style:style>'


PICTURE: Final = '<draw:frame><draw:image xlink:href="Pictures/1.png"/><svg:title>not shown</svg:title></draw:frame>'
COMMENT: Final = "<office:annotation><text:p>{}</text:p></office:annotation>"
