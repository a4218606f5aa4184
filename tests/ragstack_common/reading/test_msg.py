"""A mail of Outlook is read as Outlook shows it."""

# ruff: noqa: E501, ISC004 - RTF

from datetime import UTC, datetime

import pytest

from ragstack_common.reading.conversion import ReadText, convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.mail import outlook_rtf
from tests.support.mail_files import Storage, compound_file, compressed, outlook

SUBJECT, SENDER, SENDER_ADDRESS, BODY, HTML, RTF = 0x0037, 0x0C1A, 0x5D01, 0x1000, 0x1013, 0x1009
NAME, ADDRESS, EXCHANGE_ADDRESS = 0x3001, 0x39FE, 0x3003
FILE_NAME, FILE_TYPE, FILE_DATA, FILE_IDENTIFIER = 0x3707, 0x370E, 0x3701, 0x3712


def read(storage: Storage) -> ReadText:
    return convert(compound_file(storage), "msg")


def test_a_mail_has_its_headers_and_its_page() -> None:
    sent = (datetime(2026, 1, 5, 9, 5, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()
    found = read(
        outlook(
            {SUBJECT: "Größe <Maß>", SENDER: "Zoë", SENDER_ADDRESS: "zoe@a.example", HTML: "<p>Thirty <b>größe</b>".encode("cp1252"), BODY: "Thirty"},
            {0x0039: int(sent * 10_000_000), 0x3FDE: 1252},
            recipients=[
                ({NAME: "Ana", ADDRESS: "ana@b.example"}, 1),
                ({NAME: "'bob@b.example'", ADDRESS: "bob@b.example"}, 1),
                ({NAME: "Li", EXCHANGE_ADDRESS: "/o=X/cn=li"}, 2),
            ],
        )
    )  # fmt: skip

    assert found == ReadText(
        "# Größe \\<Maß>\n\nFrom: Zoë \\<zoe@a.example>\nTo: Ana \\<ana@b.example>, bob@b.example\nCc: Li\n"
        "Date: Monday, 5 January 2026, 09:05 +0000\n\nThirty größe",
        "Größe <Maß>",
    )


def test_the_date_has_the_time_zone_of_the_sender_if_the_mail_says_it() -> None:
    headers = "Received: x\r\nDate: Mon, 5 Jan 2026 09:05:00 +0100\r\n\r\n"

    assert "Date: Monday, 5 January 2026, 09:05 +0100" in read(outlook({0x007D: headers}, {0x0039: 10**17})).text


def test_texts_in_a_code_page_are_decoded() -> None:
    storage = dict(outlook({}, {0x3FFD: 1251}))
    storage["__substg1.0_0037001E"] = "Привет".encode("cp1251")

    assert read(storage).text == "# Привет"


@pytest.mark.parametrize(
    ("rich", "shown"),
    [
        (r"{\rtf1\ansi Thirty \u246? days.\par\pard Yes.\par}", "Thirty ö days.\n\nYes."),
        (r"{\rtf1\ansi\fromtext{\fonttbl{\f0 x;}}\f0 Thirty {\'f6}.\par}", "Thirty ö."),
        (
            r"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Times;}}{\colortbl\red0;}"
            r"{\*\htmltag19 <html>}{\*\htmltag50 <body>}\htmlrtf {\htmlrtf0 {\*\htmltag64 <p class=\'22a\'22>}\htmlrtf {\htmlrtf0 Thirty"
            r"{\*\htmltag84 &nbsp;}\htmlrtf \'a0\htmlrtf0 {\*\htmltag84 <b>}\htmlrtf {\b \htmlrtf0 d\u228?ys{\*\htmltag92 </b>}\htmlrtf }\htmlrtf0 "
            r"{\f1 \'cf}\htmlrtf\par}\htmlrtf0{\*\htmltag72 </p>}{\*\mhtmltag84 <img>}{\*\htmltag0 \par }{\*\htmltag64 <p hidden>}secret{\*\htmltag72 </p>}}}",
            "Thirty däysП",
        ),
    ],
)  # fmt: skip
def test_a_body_of_rich_text_is_read(rich: str, shown: str) -> None:
    assert read(outlook({RTF: compressed(rich.encode())})).text == shown


def test_compressed_rich_text_is_that_of_the_specification() -> None:
    """Source: MS-OXRTFCP, sections 3.1.2 and 3.2."""
    first = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    second = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")

    assert outlook_rtf.unpacked(first) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert outlook_rtf.unpacked(second) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert outlook_rtf.unpacked(b"\x10\0\0\0\x04\0\0\0MELA\0\0\0\0{a}b more") == b"{a}b"


def test_attached_files_are_whole_and_pictures_are_none_of_them() -> None:
    page = b'<p>a<img src="cid:one@x">'
    found = read(
        outlook(
            {HTML: page},
            files=[
                {FILE_NAME: "größe.bin", FILE_DATA: bytes(range(256))},
                {FILE_NAME: "p.png", FILE_TYPE: "image/png", FILE_IDENTIFIER: "one@x", FILE_DATA: b"x"},
                {0x3704: "SHORT.TXT", FILE_DATA: b"y"},
            ],
        )
    )

    assert [(each.name, each.data) for each in found.attachments] == [
        ("größe.bin", bytes(range(256))),
        ("SHORT.TXT", b"y"),
    ]


def test_a_mail_in_a_mail_is_a_mail_of_the_internet() -> None:
    deepest = outlook({SUBJECT: "third", BODY: "c"}, inner=True)
    inner = outlook(
        {SUBJECT: "zweite: Größe", SENDER: "Zoë", BODY: "Thirty\r\n> größe"}, {0x0039: 134_000_000_000_000_000},
        recipients=[({NAME: "Ana", ADDRESS: "ana@b.example"}, 1)],
        files=[{FILE_NAME: "größe.txt", FILE_DATA: b"x"}, {FILE_DATA: deepest}], inner=True,
    )  # fmt: skip

    found = read(outlook({SUBJECT: "first", BODY: "a"}, files=[{NAME: "zweite", FILE_DATA: inner}]))

    assert [each.name for each in found.attachments] == ["zweite: Größe.eml"]
    second = convert(found.attachments[0].data, "eml")
    assert second.text == (
        "# zweite: Größe\n\nFrom: Zoë\nTo: Ana \\<ana@b.example>\nDate: Monday, 18 August 2025, 14:13 +0000\n"
        "Attachments: größe.txt, third.eml\n\nThirty\n\n> größe"
    )
    assert convert(second.attachments[1].data, "eml").text == "# third\n\nc"


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("IPM.Note.SMIME", bytes.fromhex("308006092a864886f70d010703a0803080"), "S/MIME"),
        ("IPM.Note", b"x", "rights management"),
    ],
)
def test_an_encrypted_mail_is_refused(kind: str, data: bytes, reason: str) -> None:
    name = "smime.p7m" if "SMIME" in kind else "message.rpmsg"

    with pytest.raises(UnreadableDocument, match=rf"encrypted \({reason}\)"):
        read(outlook({0x001A: kind, SUBJECT: "a"}, files=[{FILE_NAME: name, FILE_DATA: data}]))


def test_a_signed_mail_is_read() -> None:
    signed = b"Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThirty\r\n--b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nx\r\n--b--"
    files: list[dict[int, str | bytes | Storage]] = [{FILE_NAME: "smime.p7m", FILE_DATA: signed}]

    found = read(outlook({0x001A: "IPM.Note.SMIME.MultipartSigned", SUBJECT: "a"}, files=[*files]))

    assert found == ReadText("# a\n\nThirty", "a")


def test_a_file_that_is_not_a_mail_is_damaged() -> None:
    with pytest.raises(UnreadableDocument, match=r"The \.msg file is damaged"):
        convert(b"x" * 600, "msg")
