"""Documents as people read them: a page of a PDF or the text, with the quoted characters marked."""

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, model_validator

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.core.clients import dynamodb_client, s3_client
from ragstack_common.core.errors import InvalidRequestError, ServiceUnavailableError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.reading import formats
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import ended_its_reader, took_too_long
from ragstack_common.reading.warm_process import ProcessBusy, ProcessEnded, WarmProcess
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.services.bucket import DocumentsBucket
from ragstack_common.services.documents import Documents, SeenDocument
from ragstack_common.settings.ingestion import ViewerSettings

MAX_TEXTS: Final = 50
MAX_QUOTED_CHARACTERS: Final = 20_000
MAX_ALL_QUOTED_CHARACTERS: Final = 100_000
MAX_SECONDS: Final = 25.0
"""Maximum time to show a document; API Gateway waits for 29 seconds."""

MEMORY_LIMIT: Final = 1280 * 1024**2
"""Bytes of memory for the process that reads the documents; the function has 1,769 MB."""

Texts = Annotated[
    list[Annotated[str, Field(max_length=MAX_QUOTED_CHARACTERS)]],
    Field(
        max_length=MAX_TEXTS,
        description="The characters to mark, such as those that an answer quotes;"
        f" {MAX_ALL_QUOTED_CHARACTERS:,} in all texts",
    ),
]


@cache
def viewing_process() -> WarmProcess:
    """Return the process in which this one shows documents, and which alone imports the libraries for it."""
    return WarmProcess("ragstack_common.reading.viewing", [str(MEMORY_LIMIT)])


class ViewRequest(BaseModel, extra="forbid"):
    """A request to show a document."""

    uri: str = Field(min_length=1, max_length=2048, description="The document's s3:// URI")
    page: int | None = Field(None, ge=1, description="The page to show; by default the first with a mark, or else 1")
    texts: Texts = Field(default_factory=list)
    passage: str | None = Field(
        None,
        max_length=200_000,
        description="The content of the source that the texts are from, which says which of several occurrences is"
        " meant",
    )
    starts: list[int] | None = Field(
        None, description="Offsets of the texts in the passage, for a text that the passage has more than once"
    )
    region: bool = Field(
        default=False,
        description="Whether the picture shows only the part of a page around the texts: whole paragraphs, and the"
        " figures next to them, of the page with most of their characters. `page` says near which one to look first",
    )

    @classmethod
    def of_link(cls, uri: str, page: int | None, passage: str, marks: str) -> "ViewRequest":
        """Return the request that a link stands for; raises InvalidRequestError."""
        spans = [(int(begin), int(end)) for begin, _, end in (mark.partition("-") for mark in marks.split(","))]
        if not all(begin < end <= len(passage) for begin, end in spans):
            raise InvalidRequestError(f"marks: each is START-END, offsets in the passage's {len(passage):,} characters")
        texts = [passage[begin:end] for begin, end in spans]
        starts = [begin for begin, _ in spans]
        return cls(uri=uri, page=page, texts=texts, passage=passage, starts=starts, region=True)

    @model_validator(mode="after")
    def _has_texts_for_a_region(self) -> "ViewRequest":
        if self.region and not self.texts:
            raise ValueError("region needs texts: it is the part of a page around them")
        return self

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
    """A part of a picture, as fractions of its width and height."""

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
        description="Where it is on the picture of its page, one box for each line; none if marked is false. With"
        " region, those of the page shown are places on the picture of the region"
    )


class ShownPart(BaseModel):
    """What the process shows of a document."""

    title: str | None
    format: str = Field(examples=["pdf"])
    pages: int | None = Field(description="Number of pages; null for formats without pages")
    page: int | None = Field(description="The page shown, from 1; null if none is")
    image: str | None = Field(
        description="The picture of the page or of the region, in base64; null for formats without pages, and for a"
        " region of texts that are marked nowhere"
    )
    image_type: str | None = Field(description="Its media type", examples=["image/png"])
    width: int | None = Field(description="Pixels of the picture")
    height: int | None = Field(description="Pixels of the picture")
    text: str = Field(description="Text of the page, or of the document: the part around the first mark if it is long")
    text_start: int = Field(description="Offset in the document's text at which that part begins")
    region: MarkBox | None = Field(
        description="The part of the page that the picture shows, as fractions of its width and height; null for all of"
        " it, or if there is no picture"
    )
    marks: list[Mark]
    pages_without_text: list[int] = Field(
        description="Pages without text, which may be images. With marks near the requested page, only those around it"
    )


class DocumentView(ShownPart):
    """A document with marks. A mark covers exactly the characters of its text; only white space may differ."""

    uri: str
    key: str
    unmarked: list[int] = Field(
        description="Texts that are marked nowhere: not in the document, outside of the part shown, in several places"
        " of which none is certain to be meant, or without a place on the picture of a page"
    )
    mark_pages: list[int] = Field(description="Pages on which texts are marked")


class Viewer:
    """Shows documents that a caller sees, as the registry has them, up to a size of *max_bytes*."""

    def __init__(
        self,
        documents: Documents,
        bucket: DocumentsBucket,
        max_bytes: int,
        process: WarmProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._documents, self._bucket = documents, bucket
        self._max_bytes, self._process, self._clock = max_bytes, process, clock

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Viewer":
        """Build the viewer that the environment describes; raises ConfigurationError."""
        settings = ViewerSettings.from_env(env)
        bucket = DocumentsBucket(settings.documents_bucket, s3_client())
        registry = DocumentRegistry(settings.registry_table, dynamodb_client())
        process = viewing_process()
        process.start()
        return cls(Documents(registry, bucket, Guard.from_env(env)), bucket, settings.viewer_max_bytes, process)

    def view(self, caller: Caller, request: ViewRequest) -> DocumentView:
        """Show a document, with marks.

        Raises:
            DocumentNotFoundError: The registry does not know it, the caller does not see it, or it is deleted.
            InvalidRequestError: The file cannot be shown, or has no such page.
            ServiceUnavailableError: The bucket fails or has a version that the registry does not know yet, or other
                documents take too long.
        """
        seen = self._documents.seen(caller, request.uri)
        try:
            shown = self._shown(seen, request)
        except UnreadableDocument as error:
            raise InvalidRequestError(f"{seen.key!r:.100} cannot be shown: {error}") from error
        marked = {mark.index for mark in shown.marks if mark.marked}
        return DocumentView(
            uri=request.uri,
            key=seen.key,
            unmarked=[index for index in range(len(request.texts)) if index not in marked],
            mark_pages=sorted({mark.page for mark in shown.marks if mark.marked and mark.page}),
            **dict(shown),
        )

    def _shown(self, seen: SeenDocument, request: ViewRequest) -> ShownPart:
        """Return what the process shows of a document; it gets the file if it does not have it open."""
        if seen.failure is not None:
            raise UnreadableDocument(f"it could not be indexed. {seen.failure}")
        file_format = None if seen.is_converted else formats.of_name(seen.key)
        if seen.size > self._max_bytes:
            raise UnreadableDocument(f"the file has {seen.size:,} bytes; the maximum is {self._max_bytes:,}.")
        wish = request.model_dump(exclude={"uri"})
        head = {"name": f"{request.uri}#{seen.etag}", "format": file_format, **wish}
        shown_format = file_format or seen.key.rpartition(".")[2][:8]
        until = self._clock() + MAX_SECONDS
        answer = self._answer(json.dumps(head).encode(), shown_format, until)
        if "wanted" in answer:
            data, content_type = self._bucket.read(seen.key, seen.etag)
            head["charset"] = charset_of(content_type)
            if seen.has_words:
                head["recognized"] = json.loads(self._bucket.read_words(seen.key))
            answer = self._answer(json.dumps(head).encode() + b"\n" + data, shown_format, until)
        if "refused" in answer:
            raise UnreadableDocument(answer["refused"])
        if "invalid" in answer:
            raise InvalidRequestError(answer["invalid"])
        return ShownPart.model_validate(answer["shown"])

    def _answer(self, message: bytes, file_format: str, until: float) -> dict[str, Any]:
        while True:
            try:
                answer = self._process.call(message, until - self._clock())
            except ProcessBusy:
                raise ServiceUnavailableError("Other documents are being read, which takes long: try again") from None
            except TimeoutError:
                raise UnreadableDocument(took_too_long(file_format, MAX_SECONDS)) from None
            except ProcessEnded as error:
                LOGGER.warning("the process that shows documents ended: %s", error)
                if error.answered > 1:  # the first answer of a new process requests the file
                    continue  # other documents may have taken its memory
                raise UnreadableDocument(ended_its_reader(file_format, error.exit_code)) from None
            found: dict[str, Any] = json.loads(answer)
            return found
