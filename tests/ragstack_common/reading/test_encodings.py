"""Text files are read in their encoding, or not at all."""

from encodings.aliases import aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.encodings import charset_of, decoded
from ragstack_common.reading.formats import UnreadableDocument

GERMAN = "Die Ferien dauern dreißig Tage. Grüße aus München."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_or_utf_8_decides(encoding: str) -> None:
    assert decoded(GERMAN.encode(encoding)) == GERMAN
    if encoding != "utf-8":
        assert decoded(GERMAN.encode(encoding), "cp1251") == GERMAN


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("El señor pidió un año de vacaciones. Mañana habrá más.", "latin-1"),
        ("Le préavis est très court, à Noël il est doublé.", "latin-1"),
        (GERMAN, "cp1252"),
        ("出張旅費規程", "shift_jis"),
        ("会議室の予約は三日前までです。", "iso2022_jp"),
        ("会議室の予約は三日前までです。", "euc_jp"),
        ("Отпуск длится двадцать восемь дней.", "cp1251"),
        ("Отпуск длится двадцать восемь дней.", "koi8-r"),
        ("Urlop trwa dwadzieścia sześć dni, później więcej.", "cp1250"),
    ],
)
def test_the_encoding_of_a_short_text_is_found(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding)) == text


def test_what_the_object_says_decides() -> None:
    assert decoded("año".encode("latin-1"), charset_of("text/plain; charset=ISO-8859-1")) == "año"
    assert decoded("año".encode(), charset_of("text/plain; charset=utf-8")) == "año"
    assert charset_of("text/plain; charset=klingon") is None
    assert charset_of("text/plain") is None


@given(st.integers(0, 200))
def test_utf_8_that_was_cut_or_has_a_wrong_byte_stays_utf_8(place: int) -> None:
    data = (GERMAN * 3).encode()
    place = min(place, len(data) - 1)

    wrong = decoded(data[:place] + b"\xff" + data[place + 1 :])

    assert wrong.count("\ufffd") in (1, 2)
    assert wrong.count("ü") >= 5
    assert "\ufffd" not in decoded(data[:place])[:-1]


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnreadableDocument, match="is not text"):
        decoded(bytes(range(32)) * 40)


@given(st.binary(max_size=200), st.sampled_from(sorted({*aliases, *aliases.values()})))
def test_any_bytes_are_read_or_refused_whatever_their_charset(data: bytes, charset: str) -> None:
    try:
        assert isinstance(decoded(data, charset_of(f"text/plain; charset={charset}")), str)
    except UnreadableDocument as error:
        assert str(error).endswith(".")  # noqa: PT017 - both are right


@pytest.mark.parametrize(
    "charset", ["base64", "quoted-printable", "rot13", "zip", "idna", "punycode", "unicode_escape", "undefined", "x"]
)
def test_a_codec_that_is_not_of_text_is_no_charset(charset: str) -> None:
    assert charset_of(f"text/plain; charset={charset}") is None
