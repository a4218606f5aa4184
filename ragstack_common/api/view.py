"""Documents over HTTP as people read them: a page of a PDF or the text, with the quoted characters marked."""

import base64
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.api.documents import Documents, DocumentsBucket
from ragstack_common.api.http import serve
from ragstack_common.core.clients import dynamodb_client, s3_client
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.ingestion_config import ViewerSettings
from ragstack_common.reading import formats
from ragstack_common.reading.alignment import Span, locate
from ragstack_common.reading.conversion import MAX_TEXT_CHARACTERS, convert, plain_text
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.pdf import Box, PdfDocument, Picture
from ragstack_common.registry.documents import DocumentRegistry

MAX_TEXTS: Final = 50
MAX_QUOTED_CHARACTERS: Final = 20_000
MAX_ALL_QUOTED_CHARACTERS: Final = 100_000
MAX_PASSAGE_CHARACTERS: Final = 200_000
MAX_SHOWN_CHARACTERS: Final = 200_000
"""Characters of a text without pages in one response; Lambda answers with 6 MB at most."""

NEARBY_PAGES: Final = 2
"""Pages before and after the page asked for that are searched first: a passage is on few pages."""

MAX_READING_SECONDS: Final = 15.0
"""Seconds for reading the pages of a PDF, before those that were read have to do."""

MAX_KEPT_DOCUMENTS: Final = 2
"""Documents that a function keeps open: people page through one."""

Texts = Annotated[
    list[Annotated[str, Field(max_length=MAX_QUOTED_CHARACTERS)]],
    Field(
        max_length=MAX_TEXTS,
        description="The characters to mark, such as those that an answer quotes;"
        f" {MAX_ALL_QUOTED_CHARACTERS:,} in all texts",
    ),
]


class ViewRequest(BaseModel):
    """A request to show a document."""

    model_config = ConfigDict(extra="forbid")

    uri: str = Field(min_length=1, max_length=2048, description="The document's s3:// URI")
    page: int | None = Field(None, ge=1, description="The page to show; by default the first with a mark, or else 1")
    texts: Texts = Field(default_factory=list)
    passage: str | None = Field(
        None,
        max_length=MAX_PASSAGE_CHARACTERS,
        description="The content of the source that the texts are from, which says which of several occurrences is"
        " meant",
    )
    starts: list[int] | None = Field(
        None, description="Offsets of the texts in the passage, for a text that the passage has more than once"
    )

    @model_validator(mode="after")
    def _is_short_enough(self) -> "ViewRequest":
        if (characters := sum(map(len, self.texts))) > MAX_ALL_QUOTED_CHARACTERS:
            most = f"{MAX_ALL_QUOTED_CHARACTERS:,}"
            raise ValueError(f"texts have {characters:,} characters, and at most {most} are marked at once: send fewer")
        return self

    @model_validator(mode="after")
    def _has_one_start_for_each_text(self) -> "ViewRequest":
        if self.starts is not None and (self.passage is None or len(self.starts) != len(self.texts)):
            raise ValueError("starts needs a passage, and one offset for each of the texts")
        return self


class MarkBox(BaseModel):
    """A part of a line on the picture of a page, as fractions of its width and height."""

    left: float
    top: float
    width: float
    height: float


class Mark(BaseModel):
    """Where one of the texts is, or its part on one page."""

    index: int = Field(description="Its position in the request's texts, from 0")
    page: int | None = Field(description="The page that it is on; null for formats without pages")
    start: int = Field(description="Offset of its first character in text, or in the text of its own page")
    end: int = Field(description="Offset after its last character")
    marked: bool = Field(
        description="Whether the view shows where it is: with boxes on the page, or with offsets in a text without"
        " pages. False for words of a page whose place on its picture is not known"
    )
    boxes: list[MarkBox] = Field(
        description="Where it is on the picture of its page, one box for each line; none if marked is false"
    )


class DocumentView(BaseModel):
    """A document with marks. A mark covers exactly the characters of its text; only white space may differ."""

    uri: str
    key: str
    title: str | None
    format: str = Field(examples=["pdf"])
    pages: int | None = Field(description="Number of pages; null for formats without pages")
    page: int | None = Field(description="The page shown, from 1")
    image: str | None = Field(description="The picture of the page, in base64")
    image_type: str | None = Field(description="Its media type", examples=["image/png"])
    width: int | None = Field(description="Pixels of the picture")
    height: int | None = Field(description="Pixels of the picture")
    text: str = Field(description="Text of the page, or of the document: the part around the first mark if it is long")
    text_start: int = Field(description="Offset in the document's text at which that part begins")
    marks: list[Mark]
    unmarked: list[int] = Field(
        description="Texts that are marked nowhere: not in the document, outside of the part shown, in several places"
        " of which none is certain to be meant, or without a place on the picture of a page"
    )
    mark_pages: list[int] = Field(description="Pages on which texts are marked")
    pages_without_text: list[int] = Field(
        description="Pages without text, which may be images. With marks near the page asked for, only those around it"
    )


@dataclass
class _Opened:
    """A document whose pages are read when they are needed."""

    file_format: str
    text: str = ""
    title: str | None = None
    pdf: PdfDocument | None = None
    page_texts: dict[int, str] = field(default_factory=dict)

    def page_text(self, number: int) -> str:
        assert self.pdf is not None
        if number not in self.page_texts:
            self.page_texts[number] = self.pdf.text(number)
        return self.page_texts[number]


class Viewer:
    """Shows documents that a caller sees, as the registry has them.

    Args:
        documents: Finds them.
        bucket: Has their files.
        max_bytes: Larger files are not shown.
        clock: Returns seconds.
    """

    def __init__(
        self,
        documents: Documents,
        bucket: DocumentsBucket,
        max_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._documents, self._bucket = documents, bucket
        self._max_bytes, self._clock = max_bytes, clock
        self._kept: OrderedDict[tuple[str, str], _Opened] = OrderedDict()

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Viewer":
        """Build the viewer that the environment describes.

        Raises:
            ConfigurationError: A variable is missing or invalid.
        """
        settings = ViewerSettings.from_env(env)
        bucket = DocumentsBucket(settings.documents_bucket, s3_client())
        registry = DocumentRegistry(settings.registry_table, dynamodb_client())
        return cls(Documents(registry, bucket, Guard.from_env(env)), bucket, settings.viewer_max_bytes)

    def view(self, caller: Caller, request: ViewRequest) -> DocumentView:
        """Show a document, with marks.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it is deleted.
            InvalidRequestError: The file cannot be shown, or has no such page.
            ServiceUnavailableError: The bucket fails, or has a version that the registry does not know yet.
        """
        seen = self._documents.seen(caller, request.uri)
        try:
            opened = self._opened(request.uri, seen.key, seen.etag, seen.size)
            shown = _PdfView(opened, request, self._clock).shown() if opened.pdf else _text_view(opened, request)
        except UnreadableDocument as error:
            raise InvalidRequestError(f"{seen.key!r:.100} cannot be shown: {error}") from error
        except MemoryError as error:
            text = f"{seen.key!r:.100} cannot be shown: reading it takes too much memory"
            raise InvalidRequestError(text) from error
        marked = {mark.index for mark in shown["marks"] if mark.marked}
        return DocumentView(
            uri=request.uri,
            key=seen.key,
            title=opened.title,
            format=opened.file_format,
            unmarked=[index for index in range(len(request.texts)) if index not in marked],
            mark_pages=sorted({mark.page for mark in shown["marks"] if mark.marked and mark.page}),
            **shown,
        )

    def _opened(self, uri: str, key: str, etag: str, size: int) -> _Opened:
        name = (uri, etag)
        if name not in self._kept:
            file_format = formats.of_name(key)
            if file_format in formats.UNREADABLE_HERE:
                raise UnreadableDocument(f"files of the type .{file_format} have no view.")
            if size > self._max_bytes:
                raise UnreadableDocument(f"the file has {size:,} bytes; the maximum is {self._max_bytes:,}.")
            self._kept[name] = _opened(self._bucket.read(key, etag), file_format)
        self._kept.move_to_end(name)
        while len(self._kept) > MAX_KEPT_DOCUMENTS:
            self._kept.popitem(last=False)
        return self._kept[name]


def _opened(data: bytes, file_format: str) -> _Opened:
    formats.check(data, file_format)
    if file_format == "pdf":
        return _Opened(file_format, pdf=PdfDocument(data))
    if file_format in formats.READ_DIRECTLY:
        return _Opened(file_format, plain_text(data))
    return _Opened(file_format, *convert(data, file_format))


def _text_view(opened: _Opened, request: ViewRequest) -> dict[str, Any]:
    """Show a document without pages."""
    if request.page is not None:
        raise InvalidRequestError(f"page: a .{opened.file_format} file has no pages")
    found = locate(opened.text, request.texts, request.passage, request.starts)
    first = min((span[0] for span in found if span), default=0)
    begin = max(0, min(first - MAX_SHOWN_CHARACTERS // 4, len(opened.text) - MAX_SHOWN_CHARACTERS))
    end = begin + MAX_SHOWN_CHARACTERS
    return {
        **dict.fromkeys(("pages", "page", "image", "image_type", "width", "height")),
        "text": opened.text[begin:end],
        "text_start": begin,
        "marks": [
            Mark(index=index, page=None, start=span[0] - begin, end=span[1] - begin, marked=True, boxes=[])
            for index, span in enumerate(found)
            if span and begin <= span[0] and span[1] <= end
        ],
        "pages_without_text": [],
    }


class _PdfView:
    """Shows one page of a PDF."""

    def __init__(self, opened: _Opened, request: ViewRequest, clock: Callable[[], float]) -> None:
        assert opened.pdf is not None
        self._opened, self._pdf, self._request, self._clock = opened, opened.pdf, request, clock
        if request.page is not None and request.page > len(self._pdf):
            raise InvalidRequestError(f"page: the document has {len(self._pdf):,} pages")

    def shown(self) -> dict[str, Any]:
        """Return the page and all marks."""
        parts = self._near() if self._request.page and self._request.texts and self._request.passage else None
        if parts is None:
            self._read(range(1, len(self._pdf) + 1))
            parts = self._found(sorted(self._opened.page_texts), self._request.passage)
        page = self._request.page or min((number for number, *_ in parts), default=1)
        picture: Picture = self._pdf.picture(page)
        return {
            "pages": len(self._pdf),
            "page": page,
            "image": base64.b64encode(picture.data).decode(),
            "image_type": picture.media_type,
            "width": picture.width,
            "height": picture.height,
            "text": self._opened.page_text(page),
            "text_start": 0,
            "marks": self._marks(parts),
            "pages_without_text": sorted(
                number for number, text in self._opened.page_texts.items() if not text.strip()
            ),
        }

    def _read(self, pages: Sequence[int]) -> None:
        """Read pages, until it takes too long or they have too much text."""
        until = self._clock() + MAX_READING_SECONDS
        characters = sum(map(len, self._opened.page_texts.values()))
        for number in pages:
            if characters > MAX_TEXT_CHARACTERS or self._clock() > until:
                return
            if number not in self._opened.page_texts:
                characters += len(self._opened.page_text(number))

    def _near(self) -> list[tuple[int, int, Span]] | None:
        """Find the texts around the page asked for; None if the passage or one of them is not there."""
        page, count = self._request.page or 1, len(self._pdf)
        pages = range(max(1, page - NEARBY_PAGES), min(count, page + NEARBY_PAGES) + 1)
        self._read(pages)
        parts = self._found(pages, self._request.passage, complete=False)
        return parts if {index for _, index, _ in parts} == {*range(len(self._request.texts))} else None

    def _found(
        self, pages: Sequence[int], passage: str | None, *, complete: bool = True
    ) -> list[tuple[int, int, Span]]:
        """Return the parts of the texts that were found: page, index of the text, and offsets in the page's text."""
        texts = [self._opened.page_text(number) for number in pages]
        # As the text of the whole document, which passages are from.
        joined = "\n".join(texts)
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text) + 1)
        near = None
        if (asked := self._request.page) is not None and asked in pages:
            position = [*pages].index(asked)
            near = (starts[position], starts[position + 1])
        found = locate(joined, self._request.texts, passage, self._request.starts, near, only_inside=not complete)
        parts = []
        for index, span in enumerate(found):
            if span is None:
                continue
            first, last = bisect_right(starts, span[0]) - 1, bisect_right(starts, span[1] - 1) - 1
            for position in range(first, last + 1):
                begin, end = max(0, span[0] - starts[position]), min(len(texts[position]), span[1] - starts[position])
                if texts[position][begin:end].strip():
                    parts.append((pages[position], index, (begin, end)))
        return parts

    def _marks(self, parts: list[tuple[int, int, Span]]) -> list[Mark]:
        marks = []
        for page in sorted({number for number, *_ in parts}):
            own = [(index, span) for number, index, span in parts if number == page]
            for (index, span), boxes in zip(own, self._pdf.boxes(page, [span for _, span in own]), strict=True):
                shown = [_box(box) for box in boxes]
                marks.append(Mark(index=index, page=page, start=span[0], end=span[1], marked=bool(shown), boxes=shown))
        return marks


def _box(box: Box) -> MarkBox:
    return MarkBox(**{name: round(value, 6) for name, value in box._asdict().items()})


def add_view(app: APIGatewayRestResolver, viewer: Callable[[], Viewer], caller: Callable[[], Caller]) -> None:
    """Add the route.

    Args:
        app: Routes the requests.
        viewer: Called with each request.
        caller: Returns the caller of the current request.
    """

    @serve(app, "view")
    def view(request: ViewRequest) -> DocumentView:
        """Show a page of a PDF as an image, or the text of another document, and where the texts are in it."""
        return viewer().view(caller(), request)
