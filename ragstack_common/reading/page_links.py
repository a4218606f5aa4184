"""Links to pictures: the path of the API that shows the part of a page around words of a passage.

A link has no rights: the API shows its picture to callers who see the document when they follow it.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.text.excerpts import closest_sentence

PATH: Final = "/api/view"

CONTEXT_CHARACTERS: Final = 60
"""Characters of the passage before and after the words, which say which of several occurrences is meant."""

MAX_PASSAGE_BYTES: Final = 2_000
"""Bytes of the part of the passage in a link, encoded. API Gateway takes 10,240 bytes of path and headers, of which a
token can have half.

Source: Amazon API Gateway quotas, total combined size of request line and header values.
"""


def page_link(
    uri: str | None, content: str, page: int | None, query: str, marks: Sequence[tuple[int, int]] = ()
) -> str | None:
    """Return the path of the picture of words of a passage, or None for documents without pages.

    Args:
        uri: The document.
        content: A passage of it.
        page: The page on which the words begin, if it is known.
        query: What was looked for.
        marks: Offsets of the words in the passage; if there are too many, the first of them are shown. Without any, the
            words are the sentence that has most words of the query.
    """
    if not (uri and uri.startswith("s3://") and _has_pages(uri)):
        return None
    spans = sorted(marks) or [closest_sentence(content, query)[:2]]
    while True:
        begin, end = spans[0][0], max(last for _, last in spans)
        first, last = max(0, begin - CONTEXT_CHARACTERS), end + CONTEXT_CHARACTERS
        passage = quote(content[first:last], safe="")
        if len(passage) <= MAX_PASSAGE_BYTES:
            break
        if len(spans) > 1:
            spans.pop()
        else:
            spans = [(begin, begin + (end - begin) * 3 // 4)]
    offsets = ",".join(f"{start - first}-{end - first}" for start, end in spans)
    where = f"&page={page}" if page else ""
    return f"{PATH}?uri={quote(uri, safe='')}{where}&passage={passage}&marks={offsets}"


def _has_pages(uri: str) -> bool:
    try:
        return formats.of_name(uri) in formats.WITH_PAGES
    except UnreadableDocument:
        return False
