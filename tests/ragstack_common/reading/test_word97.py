"""A Word 97-2003 file is read as Word shows it."""

import pytest

from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ole import CompoundFile
from tests.support.doc_files import DELETED, HIDDEN, IN_TABLE, RAISED, SPECIAL, P, doc, item_of, row_of
from tests.support.mail_files import compound_file


def p(text: str, changes: bytes = b"", style: int = 0, end: str = "\r") -> P:
    return P([(text, b"")], changes, style, end)


def read(data: bytes) -> str:
    return convert(data, "doc").text


@pytest.mark.parametrize("narrow", [False, True])
def test_paragraphs_and_headings_are_read(narrow: bool) -> None:
    body = [p("Leave", style=1), p("Thirty\tgrößer\x0bdays\x1e5\x1f."), p("a\x0cb"), p("Scope", b"\x40\x26\x01")]

    assert read(doc({"body": body}, narrow=narrow)) == "# Leave\n\nThirty größer\ndays-5.\n\na\n\nb\n\n## Scope"


def test_hidden_and_deleted_text_and_codes_of_fields_are_left_out() -> None:
    body = [
        P([("a", b""), ("secret", HIDDEN), ("gone", DELETED), ("b", b""), ("3", RAISED)]),
        P([("\x13", SPECIAL), ("HYPERLINK x", b""), ("\x14", SPECIAL), ("the policy", b""), ("\x15", SPECIAL)]),
        P(
            [
                ("\x13", SPECIAL),
                ("IF \x13 REF y \x14z\x15 > 1", b""),
                ("\x14", SPECIAL),
                ("yes", b""),
                ("\x15", SPECIAL),
            ]
        ),
        P([("picture\x01 and \x08shape", SPECIAL)]),
    ]

    assert read(doc({"body": body})) == "ab³\n\nthe policy\n\nyes\n\npicture and shape"


def test_tables_have_the_columns_of_their_edges() -> None:
    def row(edges: tuple[int, ...], *cells: str) -> list[P]:
        return [*(p(cell, IN_TABLE, end="\x07") for cell in cells), p("", row_of(*edges), end="\x07")]

    body = [
        p("Limits:"),
        *row((500, 900), "Site", "Days"),
        *row((500, 900), "Lisbon", "30"),
        *row((900,), "all"),
        p("End"),
    ]

    assert read(doc({"body": body})) == ("Limits:\n\n| Site | Days |\n| --- | --- |\n| Lisbon | 30 |\n| all | |\n\nEnd")


def test_items_have_the_numbers_that_word_shows() -> None:
    body = [
        p("one", item_of(1)), p("inner", item_of(1, 1)), p("inner", item_of(1, 1)), p("two", item_of(1)),
        p("inner", item_of(1, 1)), p("bullet", item_of(1, 2)), p("unknown", item_of(9)),
    ]  # fmt: skip
    levels = [(3, 0, "\x00."), (1, 4, "\x00.\x01)"), (1, 23, "\uf0b7")]

    assert read(doc({"body": body}, levels=levels)) == (
        "3. one\n  3.a) inner\n  3.b) inner\n4. two\n  4.a) inner\n    - bullet\n- unknown"
    )


def test_headers_notes_and_boxes_are_read_and_comments_are_not() -> None:
    page = [("Page ", b""), ("\x13PAGE\x14", SPECIAL), ("7", b""), ("\x15", SPECIAL)]
    stories = {
        "body": [P([("Thirty", b""), ("\x02", SPECIAL), (" days", b"")])],
        "footnotes": [P([("\x02", SPECIAL), (" of work", b"")])],
        "headers": [p(""), p("Acme"), p(""), P(page), p(""), p("")],
        "comments": [p("secret")],
        "text boxes": [p("Stop")],
    }
    lengths = [1, 5, 1, len("Page \x13PAGE\x147\x15") + 1, 1, 1]

    assert read(doc(stories, notes=[6], headers=lengths)) == "Acme\n\nThirty¹ days\n\nStop\n\n¹ of work\n\nPage"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (doc({"body": [p("a")]}, flags=0x100), "is protected by a password"),
        (doc({"body": [p("a")]}, version=0x68), "is of Word 95 or earlier: save it as .docx"),
        (compound_file({"WordDocument": b"x" * 2000}), "is damaged"),
        (compound_file({"Other": b"x"}), "is damaged"),
        (b"\xd0\xcf\x11\xe0", "is damaged"),
    ],
)
def test_what_cannot_be_read_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        read(data)


@pytest.mark.parametrize("length", [0, 64, 512, 600, 750])
def test_a_file_whose_header_is_cut_off_is_refused(length: int) -> None:
    whole = CompoundFile(doc({"body": [p("Leave")]}))
    main, table = whole.stream("WordDocument"), whole.stream("1Table")
    assert main is not None
    assert table is not None

    with pytest.raises(UnreadableDocument, match="is damaged"):
        read(compound_file({"WordDocument": main[:length], "1Table": table}))
