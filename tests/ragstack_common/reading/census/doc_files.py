"""Word 97-2003 files whose words are in every place that the format has for them."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.support.doc_files import DELETED, HIDDEN, IN_TABLE, RAISED, SPECIAL, P, doc, item_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = [(1, 0, "\x00."), (1, 4, "\x01)")]


@st.composite
def old_documents(draw: st.DrawFn) -> MarkedFile:
    """Word 97-2003 files of any structure."""
    marks = Marks()

    def runs() -> list[tuple[str, bytes]]:
        found = [(marks.show(), b"")]
        kinds: list[Callable[[], list[tuple[str, bytes]]]] = [
            lambda: [(f" {marks.show()} größer", b"")],
            lambda: [(marks.hide("hidden passages"), HIDDEN)],
            lambda: [(marks.hide("deleted passages"), DELETED)],
            lambda: [("2", RAISED), (f" {marks.show()}", b"")],
            lambda: [
                ("\x13", SPECIAL),
                (f"HYPERLINK {marks.hide()}", b""),
                ("\x14", SPECIAL),
                (marks.show(), b""),
                ("\x15", SPECIAL),
            ],
            lambda: [("\x0b", b""), (marks.show(), b"")],
            picture,
        ]
        for _ in range(draw(st.integers(0, 3))):
            found += draw(st.sampled_from(kinds))()
        return found

    def picture() -> list[tuple[str, bytes]]:
        marks.left_out["pictures"] += 1
        return [("\x01", SPECIAL)]

    def table() -> list[P]:
        columns = draw(st.integers(1, 3))
        edges = [500 * (number + 1) for number in range(columns)]
        found = []
        for _ in range(draw(st.integers(1, 3))):
            found += [P(runs(), IN_TABLE, end="\x07") for _ in range(columns)]
            found.append(P([], row_of(*edges), end="\x07"))
        return found

    body: list[P] = [P(runs())]
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.integers(0, 3))
        if kind == 0:
            body += table()
        else:
            body.append(
                P(runs(), item_of(1, draw(st.integers(0, 1))) if kind == 1 else b"", kind - 1 if kind > 1 else 0)
            )
    stories = {"body": body}
    if draw(st.booleans()):
        marks.part = "text boxes"
        stories["text boxes"] = [P(runs())]
    lengths: list[int] = []
    if draw(st.booleans()):
        marks.part = "headers and footers"
        stories["headers"] = [P([(marks.show(), b"")]) for _ in range(6)]
        lengths = [sum(len(text) for text, _ in each.runs) + 1 for each in stories["headers"]]
    return MarkedFile(doc(stories, headers=lengths, levels=_LEVELS, narrow=draw(st.booleans())), "doc", marks)
