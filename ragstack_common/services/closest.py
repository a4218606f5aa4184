"""The documents closest to a question that has no answer."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from ragstack_common.core.uris import file_name
from ragstack_common.reading.page_links import page_link
from ragstack_common.search.models import SearchOutcome
from ragstack_common.services.search_models import Passage, to_passage
from ragstack_common.settings.names import VERSION_KEY
from ragstack_common.text.excerpts import excerpt
from ragstack_common.text.positions import Position

MAX_CLOSEST: Final = 3

_TITLE_KEY: Final = "title"
_DATE_KEYS: Final = ("date", "effective", "valid_from", "published", "updated", "year")
"""Attributes that say from when a document is, the first one first."""


class ClosestDocument(Passage):
    """A document with its best passage."""

    source: str = Field(description="The document's S3 URI, URL or identifier")
    title: str = Field(description="Its attribute `title`, or the name of its file")
    version: str | int | float | None = Field(default=None, description="Its attribute `version`")
    date: str | int | float | None = Field(
        default=None, description="The first of its attributes " + ", ".join(f"`{key}`" for key in _DATE_KEYS)
    )
    picture: str | None = Field(default=None, description="As in a result of a search")
    excerpt: str = Field(
        description="The part of the passage with the most and rarest words of the question, for people: without"
        " Markdown, and with the names of columns in rows of tables"
    )


def closest_documents(question: str, outcome: SearchOutcome) -> list[ClosestDocument]:
    """Return the first documents of a search, each with its best passage."""
    best = {chunk.source: chunk for chunk in reversed(outcome.chunks) if chunk.public_source is not None}
    found = sorted(best.values(), key=outcome.chunks.index)[:MAX_CLOSEST]
    return [
        ClosestDocument(
            **dict(to_passage(chunk, question)),
            source=chunk.source,
            title=str(chunk.metadata.get(_TITLE_KEY) or file_name(chunk.source)),
            version=_value(chunk.metadata, VERSION_KEY),
            date=_value(chunk.metadata, *_DATE_KEYS),
            picture=page_link(chunk.source, chunk.content, Position.of(chunk.metadata).page, question),
            excerpt=excerpt(chunk.content, question),
        )
        for chunk in found
    ]


def _value(metadata: Mapping[str, Any], *keys: str) -> str | int | float | None:
    values = (metadata.get(key) for key in keys)
    return next((each for each in values if isinstance(each, str | int | float) and not isinstance(each, bool)), None)
