"""Documents that are put into an index: their form, and putting them in batches."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ragstack_common.errors import IndexingError, InvalidDocumentError, InvalidRequestError, RagStackError

Value = str | bool | int | Annotated[float, Field(allow_inf_nan=False)] | list[str]


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class IndexDocument(BaseModel):
    """A document of :meth:`~ragstack_common.retrieval.base.RetrievalBackend.index`.

    Attributes:
        id: Identifies the document in the index; a whole number becomes a string.
        content: The text, which is not blank.
        source: What chunks of the document name as their source; by default the attribute ``source``, or the id.
        metadata: Attributes: strings, numbers, booleans and lists of strings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Annotated[str, BeforeValidator(_as_text)] = Field(min_length=1)
    content: str = Field(pattern=r"\S")
    source: str | None = Field(None, min_length=1)
    metadata: dict[str, Value] = Field(default_factory=dict)

    @property
    def named_source(self) -> str:
        """The source, by default the attribute of that name, or the id."""
        return self.source or str(self.metadata.get("source") or self.id)


def documents_of(documents: Sequence[Mapping[str, Any]]) -> list[IndexDocument]:
    """Check documents.

    Raises:
        InvalidDocumentError: One is malformed, or two have the same id; the message names it.
    """
    checked: dict[str, IndexDocument] = {}
    for number, document in enumerate(documents):
        try:
            made = IndexDocument.model_validate(document)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(map(str, fault["loc"])) or "it"
            raise InvalidDocumentError(f"documents[{number}]: {place}: {fault['msg']}") from None
        if made.id in checked:
            raise InvalidDocumentError(f"documents[{number}]: the id {made.id!r:.100} is given twice")
        checked[made.id] = made
    return [*checked.values()]


def put_in_batches(
    documents: Sequence[IndexDocument], size: int, put: Callable[[Sequence[IndexDocument]], None]
) -> list[str]:
    """Put documents into a store, and return their ids.

    A batch that the store rejects is halved until the rejected document is alone, so that the others are stored. After
    any other error nothing more is put.

    Args:
        documents: The documents.
        size: Documents in one call.
        put: Stores a batch.

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
