"""Mails whose words are in every place that the formats have for them."""

# ruff: noqa: TC003 - the annotations of strategies are read

from collections.abc import Callable, Mapping
from email.encoders import encode_7or8bit, encode_base64, encode_quopri
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from typing import Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.support.mail_files import Storage, compound_file, compressed, outlook

_HEADERS: Final = ("Subject", "From", "To", "Cc", "Bcc")
_DEEPEST: Final = 3


class _Mail:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()

        self._parts = 0

    def whole(self) -> Message:
        self.marks.part = "main text"
        written = self.part(0)
        self.marks.part = "headers"
        for name in _HEADERS:
            if name == "Subject" or self._draw(st.booleans()):
                written[name] = self._draw(st.sampled_from(("{}", "größe {}", "日本 {}"))).format(self.marks.show())
        written["X-Hidden"] = self.marks.hide()
        written["Message-ID"] = f"<{self.marks.hide()}@a.example>"
        return written

    def part(self, depth: int) -> Message:
        kinds: list[Callable[[], Message]] = [self._plain, self._page, self._alternative]
        if depth < _DEEPEST:
            kinds += [lambda: self._mixed(depth), self._related]
        return self._draw(st.sampled_from(kinds))()

    def _text(self, text: str, subtype: str) -> Message:
        written = MIMEBase("text", subtype, charset=(charset := self._draw(st.sampled_from(("utf-8", "cp1252")))))
        written.set_payload(text.encode(charset))
        encode = self._draw(st.sampled_from((encode_base64, encode_quopri, encode_7or8bit)))
        if encode is encode_7or8bit:
            written.set_payload(text.encode(charset).decode("ascii", "surrogateescape"))
        encode(written)
        return written

    def _multipart(self, kind: str) -> MIMEMultipart:
        self._parts += 1
        return MIMEMultipart(kind, boundary=f"boundary {self._parts} of all")

    def _plain(self) -> Message:
        show = self.marks.show
        lines = [f"{show()} größer", "", f"> {show()}", f">> {show()} ä", "# " + show(), "-- ", show()]
        return self._text("\n".join(lines), "plain")

    def _page(self) -> Message:
        hidden = f"<p hidden>{self.marks.hide('hidden passages')}</p>" if self._draw(st.booleans()) else ""
        return self._text(f"<p>{self.marks.show()} größer</p>{hidden}<blockquote>{self.marks.show()}", "html")

    def _alternative(self) -> Message:
        written = self._multipart("alternative")
        words = f"{self.marks.show()} and {self.marks.show()}"
        written.attach(self._text(f"* {words}", "plain"))
        written.attach(self._text(f"<ul><li>{words}</ul>", "html"))
        return written

    def _mixed(self, depth: int) -> Message:
        written = self._multipart("mixed")
        for _ in range(self._draw(st.integers(1, 3))):
            written.attach(self.part(depth + 1))
            if self._draw(st.booleans()):
                written.attach(self._attached())
        return written

    def _attached(self) -> Message:
        word = self.marks.hide("attached files")
        if self._draw(st.booleans()):
            inner = self._text(word, "plain")
            inner["Subject"] = "inner"
            return MIMEMessage(inner)
        written = self._text(word, self._draw(st.sampled_from(("plain", "html", "csv"))))
        written.add_header("Content-Disposition", "attachment", filename=("utf-8", "", "größe.txt"))
        return written

    def _related(self) -> Message:
        written = self._multipart("related")
        written.attach(self._text(f'<p>{self.marks.show()}<img src="cid:a"></p>', "html"))
        picture = MIMEBase("image", "png", name="p.png")
        picture["Content-ID"] = "<a>"
        picture.set_payload(self.marks.hide())
        self.marks.left_out["pictures"] += 1
        written.attach(picture)
        return written


@st.composite
def mails(draw: st.DrawFn) -> MarkedFile:
    """Mails of the internet."""
    mail = _Mail(draw)
    return MarkedFile(bytes(mail.whole()), "eml", mail.marks)


@st.composite
def outlook_mails(draw: st.DrawFn) -> MarkedFile:
    """Mails of Outlook, with a body in each of its forms."""
    marks = Marks()
    words = f"{marks.show()} größer {marks.show()}"
    escaped = words.replace("ö", "\\u246?").replace("ß", "\\u223?")
    bodies: Mapping[int, str | bytes] = draw(
        st.sampled_from(
            (
                {0x1000: words},
                {0x1013: f"<p>{words}</p>".encode(), 0x1000: words},
                {0x1013: f"<p>{words}</p>"},
                {0x1009: compressed(f"{{\\rtf1\\ansi {escaped}}}".encode())},
            )
        )
    )
    marks.part = "headers"
    recipients: list[tuple[Mapping[int, str | bytes], int]] = [
        ({0x3001: marks.show(), 0x39FE: "a@b.example"}, draw(st.integers(1, 3)))
    ]
    texts: dict[int, str | bytes] = {0x0037: marks.show(), 0x0C1A: marks.show(), **bodies}
    files: list[Mapping[int, str | bytes | Storage]] = [
        {0x3707: "a.txt", 0x370E: "text/plain", 0x3701: marks.hide("attached files").encode()}
        for _ in range(draw(st.integers(0, 2)))
    ]
    if draw(st.booleans()):
        files.append({0x3701: outlook({0x0037: "inner", 0x1000: marks.hide("attached files")}, inner=True)})
    return MarkedFile(compound_file(outlook(texts, recipients=recipients, files=files)), "msg", marks)
