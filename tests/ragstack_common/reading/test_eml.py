"""A mail is read as mail programs show it, and its attached files are apart."""

# ruff: noqa: E501 - mails, and other languages

import base64
import quopri
import time
from email.message import EmailMessage
from zlib import crc32

import pytest

from ragstack_common.reading.conversion import Attachment, ReadText, convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.mail.eml import decoded_header


def mail(body: str, headers: str = "", kind: str = "") -> bytes:
    kind = kind or "text/plain; charset=utf-8"
    return f"Subject: s\nMIME-Version: 1.0\n{headers}Content-Type: {kind}\n\n{body}".encode()


def parts(*contents: str, kind: str = "mixed") -> str:
    """Return a part with parts, each with headers of its own."""
    boundary = f"b{crc32(repr(contents).encode())}"
    inner = "".join(f"--{boundary}\n{content}\n" for content in contents)
    return f"Content-Type: multipart/{kind}; boundary={boundary}\n\n{inner}--{boundary}--\n"


def of_parts(*contents: str, kind: str = "mixed") -> bytes:
    return b"Subject: s\nMIME-Version: 1.0\n" + parts(*contents, kind=kind).encode()


def read(data: bytes) -> ReadText:
    return convert(data, "eml")


def body(data: bytes) -> str:
    text = read(data).text
    return text.removeprefix("# s").strip() if "\n\nAttachments" not in text else text.split("\n\n", 2)[2]


PLAIN = "Content-Type: text/plain\n\n"
HTML = "Content-Type: text/html\n\n"


def test_a_mail_begins_with_its_subject_and_headers() -> None:
    message = EmailMessage()
    message["From"] = "Zoë Müller <zoe@a.example>"
    message["To"] = '"Lopez, Ana" <ana@b.example>, bob@b.example'
    message["Cc"] = "李雷 <lei@c.example>"
    message["Date"] = "Mon, 05 Jan 2026 09:05:00 +0100"
    message["Subject"] = "Größe & <Maß>: 日本語の件名はとても長いので折り返されます、たぶん二行以上になります"
    message.set_content("Thirty days.\n")

    found = read(bytes(message))

    assert found.text == (
        "# Größe & \\<Maß>: 日本語の件名はとても長いので折り返されます、たぶん二行以上になります\n\n"
        'From: Zoë Müller \\<zoe@a.example>\nTo: "Lopez, Ana" \\<ana@b.example>, bob@b.example\n'
        "Cc: 李雷 \\<lei@c.example>\nDate: Monday, 5 January 2026, 09:05 +0100\n\nThirty days."
    )
    assert found.title == "Größe & <Maß>: 日本語の件名はとても長いので折り返されます、たぶん二行以上になります"


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("=?iso-8859-1?Q?Gr=F6=DFe?= of =?utf-8?b?4oKs?=", "Größe of €"),
        ("=?utf-8?B?4g==?= =?utf-8?B?gqw=?=", "€"),
        ("=?utf-8?Q?a_b?=\r\n =?utf-8?Q?c?=", "a bc"),
        ("=?utf-8?Q?a?= (=?utf-8?Q?b?=)", "a (b)"),
        ("=?utf-8*en?Q?a=20b?=", "a b"),
        ("=?unknown?Q?Gr=C3=B6=C3=9Fe?=", "Größe"),
        ("=?utf-8?B?YWI?=", "ab"),
        ("=?utf-8?B?A?=", ""),
        ("=?utf-8?X?a?= b", "=?utf-8?X?a?= b"),
        ("Gr\udcc3\udcb6\udcc3\udc9fe", "Größe"),
        ("a\r\n\tb", "a b"),
    ],
)
def test_encoded_words_of_headers_are_decoded(header: str, shown: str) -> None:
    assert decoded_header(header) == shown


@pytest.mark.parametrize(
    ("date", "shown"),
    [
        ("5 Jan 2026 09:05 GMT", "Monday, 5 January 2026, 09:05 +0000"),
        ("Mon, 05 Jan 2026 09:05:00 -0000", "Monday, 5 January 2026, 09:05"),
        ("some day", "some day"),
        ("Mon, 99 Foo 2026 99:99:99", "Mon, 99 Foo 2026 99:99:99"),
        ("Mon, 05 Jan 99999 09:05:00 +9999", "Mon, 05 Jan 99999 09:05:00 +9999"),
    ],
)
def test_an_invalid_date_stays_as_it_is(date: str, shown: str) -> None:
    assert f"Date: {shown}\n" in read(mail("a", f"Date: {date}\n")).text + "\n"


def test_a_mail_without_headers_to_show_is_its_body() -> None:
    assert read(b"Received: from a\n\nThirty days.").text == "Thirty days."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_mail_in_wide_characters_is_read(encoding: str) -> None:
    data = "Subject: Größe\nContent-Type: text/plain; charset=iso-8859-1\n\nZwölf €.".encode(encoding)

    assert read(data).text == "# Größe\n\nZwölf €."


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("größer".encode(), "iso-8859-2x"),
        ("größer".encode(), "us-ascii"),
        ("größer €".encode("cp1252"), "iso-8859-1"),
        ("größer".encode(), ""),
        ("привет, как твои дела сегодня".encode("koi8-r"), "KOI8-R"),
        ("привет, как твои дела сегодня".encode("cp1251"), "utf-8"),
        ("größer".encode("utf-7"), "unicode-1-1-utf-7"),
    ],
)
def test_a_wrong_charset_does_no_harm(data: bytes, charset: str) -> None:
    declared = f"; charset={charset}" if charset else ""
    written = f"Subject: s\nContent-Type: text/plain{declared}\nContent-Transfer-Encoding: base64\n\n".encode()

    found = body(written + base64.encodebytes(data))

    assert found in ("größer", "größer €", "привет, как твои дела сегодня")


def test_quotations_are_quotations_of_markdown() -> None:
    text = "Yes.\n\nAna wrote:\n> When?\n>\n>> At noon\n>> or later.\n> # not a heading\nAt one.\n-- \nBob"

    assert body(mail(text)) == (
        "Yes.\n\nAna wrote:\n\n> When?\n\n> > At noon\n> > or later.\n\n> \\# not a heading\n\nAt one.\n\\--\nBob"
    )


@pytest.mark.parametrize(
    ("parameters", "text", "shown"),
    [
        ("format=flowed", "Thirty \ndays of \nleave.\n\n - kept\n", "Thirty days of leave.\n\n- kept"),
        ("format=flowed", "> Thirty \n> days.\nYes.", "> Thirty days.\n\nYes."),
        ("format=flowed", "> a \nb", "> a\n\nb"),
        ("format=flowed", "a\n-- \nAna", "a\n\\--\nAna"),
        ("format=flowed; delsp=yes", "日本 \n語", "日本語"),
        ("format=fixed", "Thirty \ndays.", "Thirty\ndays."),
    ],
)
def test_flowed_lines_are_joined(parameters: str, text: str, shown: str) -> None:
    assert body(mail(text, kind=f"text/plain; charset=utf-8; {parameters}")) == shown


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("<p>Thirty <b>days</b>.", "Thirty days.", "Thirty days."),
        ("<ul><li>a<li>b</ul>", "* a\n* b", "- a\n- b"),
        ("<p>View this mail in a browser.", "There are thirty days of leave, and five more for night shifts.", None),
        ("<p>News", "News https://a.example/a/b?c=d-e-f-g", "News"),
        ("", "Thirty.", None),
    ],
)
def test_of_alternatives_the_page_is_read_unless_it_says_less(page: str, text: str, shown: str | None) -> None:
    found = body(of_parts(f"{PLAIN}{text}", f"{HTML}{page}", kind="alternative"))

    assert found == (shown if shown is not None else text)


def test_the_text_around_attached_files_is_read_in_order() -> None:
    image = "Content-Type: image/png; name=p.png\n\nx"

    found = read(of_parts(f"{PLAIN}one", image, f"{HTML}<p>two", f"{PLAIN}three"))

    assert found.text == "# s\n\nAttachments: p.png\n\none\n\ntwo\n\nthree"


def test_pictures_of_a_page_are_not_attached() -> None:
    page = f'{HTML}<p>a<img src="cid:one%40x"><img src=cid:two>'
    pictures = [f"Content-Type: image/png; name={name}.png\nContent-ID: <{name}@x>\n\nx" for name in ("one", "three")]
    unnamed = "Content-Type: image/gif\nContent-ID: <two>\nContent-Disposition: inline\n\nx"

    found = read(of_parts(page, *pictures, unnamed, kind="related"))

    assert [each.name for each in found.attachments] == ["three.png"]


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ('Content-Disposition: attachment; filename="a b.pdf"', "a b.pdf"),
        ("Content-Disposition: attachment; filename*=utf-8''gr%C3%B6%C3%9Fe%20%E2%82%AC.pdf", "größe €.pdf"),
        ("Content-Disposition: attachment;\n filename*0*=utf-8''a%C3%A4;\n filename*1=b.pdf", "aäb.pdf"),
        ('Content-Disposition: attachment; filename="=?utf-8?Q?gr=C3=B6=C3=9Fe.pdf?="', "größe.pdf"),
        ("Content-Type: application/pdf; name==?utf-8?Q?a=20b.pdf?=", "a b.pdf"),
        ('Content-Disposition: attachment; filename="größe.pdf"', "größe.pdf"),
        ('Content-Disposition: attachment; filename="C:\\\\Users\\\\ana\\\\a.pdf"', "a.pdf"),
        ('Content-Disposition: attachment; filename="../../etc/passwd"', "passwd"),
        ('Content-Disposition: attachment; filename=".."', "attachment.pdf"),
        ('Content-Disposition: attachment; filename="=?utf-8?Q?a=00=0Ab=E2=80=AEfdp.exe?="', "a bfdp.exe"),
        ("Content-Disposition: attachment", "attachment.pdf"),
    ],
)  # fmt: skip
def test_names_of_attached_files_are_safe(headers: str, name: str) -> None:
    kind = "" if "Content-Type" in headers else "Content-Type: application/pdf\n"

    found = read(of_parts(f"{PLAIN}a", f"{kind}{headers}\n\nx"))

    assert [each.name for each in found.attachments] == [name]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("text/x-log", "attachment.txt"),
        ("text/csv", "attachment.csv"),
        ("image/png", "attachment.png"),
        ("a/b", "attachment"),
    ],
)
def test_a_file_without_a_name_has_that_of_its_type(kind: str, name: str) -> None:
    found = read(of_parts(f"{PLAIN}a", f"Content-Type: {kind}\n\nx"))

    assert [each.name for each in found.attachments] == [name]


def test_names_of_attached_files_are_unique_and_not_too_long() -> None:
    names = ["a.txt", "A.txt", "a.txt", "b", "b", f"{'x' * 300}.pdf"]

    found = read(of_parts(*(f"Content-Disposition: attachment; filename={name}\n\nx" for name in names)))

    long = f"{'x' * 120}.pdf"
    assert [each.name for each in found.attachments] == ["a.txt", "A (2).txt", "a (3).txt", "b", "b (2)", long]


def test_attached_files_are_whole() -> None:
    data = bytes(range(256)) * 9
    encoded = base64.encodebytes(data).decode()
    quoted = quopri.encodestring(b"a\n=b\n").decode()

    found = read(
        of_parts(
            f"Content-Type: application/x\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=a.bin\n\n{encoded}",
            f"Content-Type: text/csv; name=b.csv\nContent-Transfer-Encoding: quoted-printable\n\n{quoted}",
            "Content-Type: text/plain\nContent-Disposition: attachment; filename=c.txt\n\nThirty",
        )
    )

    assert found.attachments == (
        Attachment("a.bin", data),
        Attachment("b.csv", b"a\n=b\n"),
        Attachment("c.txt", b"Thirty"),
    )


@pytest.mark.parametrize("encoding", ["", "base64", "quoted-printable"])
def test_an_attached_mail_is_a_file(encoding: str) -> None:
    inner = "Subject: Re: a/b\nFrom: ana@a.example\nContent-Type: text/plain; charset=utf-8\n\nThirty größe\n"
    data = inner.encode()
    written = {"": data, "base64": base64.encodebytes(data), "quoted-printable": quopri.encodestring(data)}[
        encoding
    ].decode()
    header = f"Content-Transfer-Encoding: {encoding}\n" if encoding else ""

    found = read(of_parts(f"{PLAIN}a", f"Content-Type: message/rfc822\n{header}\n{written}"))

    assert [each.name for each in found.attachments] == ["Re: a-b.eml"]
    assert read(found.attachments[0].data).text == "# Re: a/b\n\nFrom: ana@a.example\n\nThirty größe"


def test_a_digest_is_its_mails() -> None:
    found = read(of_parts("\nSubject: one\n\na", "\nSubject: two\n\nb", kind="digest"))

    assert [each.name for each in found.attachments] == ["one.eml", "two.eml"]


def test_a_report_of_a_failed_delivery_says_why() -> None:
    status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\nFinal-Recipient: b@b\nStatus: 5.1.1"

    found = read(of_parts(f"{PLAIN}Failed.", status, "Content-Type: message/rfc822\n\nSubject: x\n\nx", kind="report"))

    assert "Failed.\n\nReporting-MTA: dns; a\nFinal-Recipient: b@b\nStatus: 5.1.1" in found.text
    assert [each.name for each in found.attachments] == ["x.eml"]


def test_an_invitation_is_attached() -> None:
    found = read(
        of_parts(f"{PLAIN}Meet?", "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR", kind="alternative")
    )

    assert body_of(found) == "Meet?"
    assert len(found.attachments) == 1


def body_of(found: ReadText) -> str:
    return found.text.rpartition("\n\n")[2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (of_parts("Content-Type: application/pgp-encrypted\n\nVersion: 1", "Content-Type: application/octet-stream\n\nx", kind="encrypted"), "PGP"),
        (mail("-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----"), "PGP"),
        (mail("MIAGCSqGSIb3DQEHA6CAMIACAQA=", "Content-Transfer-Encoding: base64\n", "application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m"), "S/MIME"),
    ],
)  # fmt: skip
def test_an_encrypted_mail_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=rf"encrypted \({reason}\): save it decrypted"):
        read(data)


def test_signatures_are_not_part_of_a_mail() -> None:
    signature = "Content-Type: application/pkcs7-signature; name=smime.p7s\n\nx"

    assert read(of_parts(f"{PLAIN}Thirty.", signature, kind="signed")) == ReadText("# s\n\nThirty.", "s")
    text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThirty\n- -- \ndays\n-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n"
    assert body(mail(text)) == "Thirty\n\\--\ndays"


def der(tag: int, *contents: bytes, endless: bool = False) -> bytes:
    content = b"".join(contents)
    if endless:
        return bytes([tag, 0x80]) + content + b"\0\0"
    size = len(content).to_bytes(2, "big")
    return bytes([tag, 0x82]) + size + content


@pytest.mark.parametrize("endless", [False, True])
def test_a_mail_within_its_signature_is_read(endless: bool) -> None:
    inner = b"Content-Type: text/plain; charset=utf-8\r\n\r\nThirty gr\xc3\xb6\xc3\x9fe"
    data, signed = bytes.fromhex("06092a864886f70d010701"), bytes.fromhex("06092a864886f70d010702")
    octets = der(0x24, der(0x04, inner[:20]), der(0x04, inner[20:]), endless=True) if endless else der(0x04, inner)
    content = der(0x30, data, der(0xA0, octets, endless=endless), endless=endless)
    whole = der(0x30, signed, der(0xA0, der(0x30, b"\x02\x01\x01", b"\x31\x00", content)), endless=endless)

    found = read(
        mail(
            base64.encodebytes(whole).decode(),
            "Content-Transfer-Encoding: base64\n",
            "application/pkcs7-mime; smime-type=signed-data",
        )
    )

    assert found.text == "# s\n\nThirty größe"


def test_thousands_of_recipients_take_little_time() -> None:
    recipients = ",\n ".join(f'"Person, {number}" <p{number}@a.example>' for number in range(20_000))
    begin = time.process_time()

    assert "p19999@a.example" in read(mail("a", f"To: {recipients}\n")).text
    assert time.process_time() - begin < 2


@pytest.mark.timeout(20)
def test_mails_within_each_other_end() -> None:
    deep = "Content-Type: text/plain\n\na"
    for _ in range(150):
        deep = parts(deep)

    with pytest.raises(UnreadableDocument, match="nested too deeply"):
        read(b"Subject: s\n" + deep.encode())
