"""Documents that are put into an index: their form, and putting them in batches."""

import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ragstack_common.core.errors import IndexingError, InvalidDocumentError, InvalidRequestError, RagStackError

Value: TypeAlias = str | bool | int | float | list[str]

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair, which no store can keep."""

INTEGER_LIMIT: Final = 2**63
"""Chroma turns it into a float, and Milvus refuses it."""


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is blank")
    return text


def _attributes(attributes: dict[str, Any]) -> dict[str, Value]:
    for name, value in attributes.items():
        texts = [text for text in (name, *(value if isinstance(value, list) else [value])) if isinstance(text, str)]
        if not name or any(map(SURROGATE.search, texts)):
            raise ValueError(f"the attribute {name!r:.100} has no name, or is not valid Unicode")
        if not _is_value(value):
            raise ValueError(
                f"the attribute {name!r:.100} must be a string, a number of 64 bits, a boolean or a list of strings"
            )
    return attributes


def _is_value(value: object) -> bool:
    match value:
        case str() | bool():
            return True
        case int():
            return -INTEGER_LIMIT <= value < INTEGER_LIMIT
        case float():
            return math.isfinite(value)
        case list():
            return all(isinstance(text, str) for text in value)
    return False


class IndexDocument(BaseModel):
    """A document of :meth:`~ragstack_common.search.base.RetrievalBackend.index`.

    Attributes:
        id: Identifies the document in the index; a whole number becomes a string.
        source: What chunks of the document name as their source; by default the attribute ``source``, or the id.
        metadata: Attributes: strings, numbers, booleans and lists of strings. An empty list counts as absent, as in
            filters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Annotated[str, BeforeValidator(_as_text)] = Field(min_length=1)
    content: Annotated[str, AfterValidator(_not_blank)] = Field(min_length=1)
    source: str | None = Field(None, min_length=1)
    metadata: Annotated[dict[str, Any], AfterValidator(_attributes)] = Field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, Value]:
        """The metadata to store."""
        return {name: value for name, value in self.metadata.items() if value != []}

    @property
    def named_source(self) -> str:
        """The source, by default the attribute of that name, or the id."""
        return self.source or str(self.metadata.get("source") or self.id)


def parse_documents(documents: Sequence[Mapping[str, Any]]) -> list[IndexDocument]:
    """Check documents; an InvalidDocumentError names one that is malformed, or has the id of another one."""
    checked: dict[str, IndexDocument] = {}
    for number, document in enumerate(documents):
        try:
            made = IndexDocument.model_validate(document)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(map(str, fault["loc"])) or "it"
            problem = fault["msg"].removeprefix("Value error, ")
            raise InvalidDocumentError(f"documents[{number}]: {place}: {problem}") from None
        if made.id in checked:
            raise InvalidDocumentError(f"documents[{number}]: the id {made.id!r:.100} occurs twice")
        checked[made.id] = made
    return [*checked.values()]


def put_in_batches(
    documents: Sequence[IndexDocument], size: int, put: Callable[[Sequence[IndexDocument]], None]
) -> list[str]:
    """Put documents into a store, *size* in one call, and return their ids.

    A batch that the store rejects is halved until the rejected document is alone, so that the others are stored. After
    any other error nothing more is put.

    Raises:
        IndexingError: Some documents were rejected, or the store failed after the first ones.
        RagStackError: The store failed, and nothing was stored.
    """
    indexed: list[str] = []
    failed: dict[str, str] = {}
    batches = deque(documents[start : start + size] for start in range(0, len(documents), size))
    while batches:
        batch = batches.popleft()
        try:
            put(batch)
        except InvalidRequestError as error:
            half = len(batch) // 2
            if half:
                batches.extendleft([batch[half:], batch[:half]])
            else:
                failed[batch[0].id] = str(error)
        except RagStackError as error:
            if not indexed and not failed:
                raise
            failed |= {document.id: str(error) for some in (batch, *batches) for document in some}
            batches.clear()
        else:
            indexed += [document.id for document in batch]
    if failed:
        raise IndexingError(indexed, failed)
    return indexed
