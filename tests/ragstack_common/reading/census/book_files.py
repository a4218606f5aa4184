"""E-books and web archives of web pages whose words are in every place."""

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.ragstack_common.reading.census.page_files import web_pages
from tests.support.book_files import epub, mht


@st.composite
def books(draw: st.DrawFn) -> MarkedFile:
    """Books of one chapter of any structure, and of short ones."""
    page = draw(web_pages())
    marks = page.marks
    marks.shown = dict.fromkeys(marks.shown, "chapter 1")
    marks.part = "chapter 2"
    short = f"<html><body><p>{marks.show()} and {marks.show()}</p></body></html>"
    contents = {1: "Second"} if draw(st.booleans()) else None
    return MarkedFile(epub([page.data.decode(), short], contents=contents), "epub", marks)


@st.composite
def web_archives(draw: st.DrawFn) -> MarkedFile:
    """Web archives with a page of any structure."""
    page = draw(web_pages())
    marks: Marks = page.marks
    frames = [("text/html; charset=utf-8", "cid:f", f"<p>{marks.show()}")] if draw(st.booleans()) else []
    return MarkedFile(mht(page.data.decode(), frames), "mht", marks)
