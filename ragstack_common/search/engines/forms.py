"""The two forms of Retrieve: for knowledge bases with a vector store, and for those of type MANAGED.

A form writes the configuration of a search and reads its hits. Everything else knows one form alone: filters and hits
have the attributes ``x-amz-bedrock-kb-...``, and a document of S3 is its S3 URI.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, Protocol

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.core.uris import is_s3_uri, s3_uri_of_url, s3_urls
from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.filters.tree import DATA_SOURCE_KEY
from ragstack_common.search.engines import converted
from ragstack_common.search.engines.hits import CHUNK_ID_KEY, document_uri
from ragstack_common.settings.names import (
    MANAGED,
    MANAGED_DATA_SOURCE_KEY,
    MANAGED_PAGE_KEY,
    MANAGED_SOURCE_URI_KEY,
    RESERVED_PREFIX,
    SOURCE_URI_KEY,
)
from ragstack_common.text.positions import PAGE_KEY

_PAGE_KEYS: Final = (MANAGED_PAGE_KEY, "_excerpt_page_number")
"""Guesses: no source names the page of a MANAGED knowledge base's chunk. The second is that of Amazon Kendra's index,
whose names of attributes MANAGED knowledge bases use."""


class Form(Protocol):
    """How Retrieve is asked, and what it answers.

    Attributes:
        has_pages: Whether the service offers further pages of a search whose first one is full.
        source_key: The attribute by which the service knows a document.
    """

    has_pages: bool
    source_key: str

    def kind(self, signals: Mapping[str, float]) -> str | None:
        """Return the kind of search that a calibration is for, from the signals of a hit; None if it is not known."""

    def configuration(self, count: int, filter_: dict[str, Any] | None, *, everything: bool) -> dict[str, Any]:
        """Return the retrievalConfiguration of a search for *count* chunks, 1 to 100.

        With *everything*, chunks that the service finds irrelevant count too.
        """

    def as_indexed(self, filter_: Filter) -> Filter:
        """Return a filter with the attributes of the service, and the names by which it can know documents.

        Raises:
            InvalidFilterError: The service does not have an attribute of the filter; the message names it.
        """

    def of_documents(self, uris: Sequence[str]) -> Filter:
        """Return a filter for the chunks of documents that are indexed under these names, one or more."""

    def hit(self, hit: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return one of the ``retrievalResults`` as a knowledge base with a vector store would."""


class VectorForm:
    """A search of a vector store."""

    has_pages = True
    source_key = SOURCE_URI_KEY

    def __init__(self, vector_store: str, search_type: str | None) -> None:
        self._search_type = search_type
        sent = search_type == "SEMANTIC" or STORE_RULES[vector_store].has_hybrid
        self._override = {"overrideSearchType": search_type} if search_type and sent else {}

    def kind(self, signals: Mapping[str, float]) -> str | None:
        """Return HYBRID or SEMANTIC; the local Bedrock's default depends on the vector store."""
        return ("HYBRID" if "lexical" in signals else "SEMANTIC") if signals else self._search_type

    def configuration(
        self,
        count: int,
        filter_: dict[str, Any] | None,
        *,
        everything: bool,  # noqa: ARG002 - a vector store ranks everything
    ) -> dict[str, Any]:
        """Return a vectorSearchConfiguration."""
        restriction = {} if filter_ is None else {"filter": filter_}
        return {"vectorSearchConfiguration": {"numberOfResults": count, **restriction, **self._override}}

    def as_indexed(self, filter_: Filter) -> Filter:
        """Return a filter that also finds the converted texts of the documents that it names."""
        return converted.as_indexed(filter_)

    def of_documents(self, uris: Sequence[str]) -> Filter:
        """Return a filter on the attribute of their names."""
        if len(uris) == 1:
            return Clause(Operator.EQUALS, SOURCE_URI_KEY, uris[0])
        return Clause(Operator.IN, SOURCE_URI_KEY, tuple(uris))

    def hit(self, hit: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the hit."""
        return hit


class ManagedForm:
    """A managed search, which is always hybrid, and reranked unless everything is wanted.

    The service returns no id of a chunk. Its source and its content make one: it stays the same while both do, so a
    document that is ingested again with a change has new ids where it changed, and equal passages of a document have
    one id and count as one chunk.

    Documents of the connector CUSTOM are known by the id with which they were ingested, which is their S3 URI; those of
    the connector S3 by an https URL. The S3 URI finds both, as the filter names all three forms.

    Args:
        region: Returns the Region of the knowledge base, in which its buckets are.
    """

    has_pages = False  # the model has a nextToken, but third parties never got one
    source_key = MANAGED_SOURCE_URI_KEY

    def __init__(self, region: Callable[[], str]) -> None:
        self._region = region

    def kind(self, signals: Mapping[str, float]) -> str:  # noqa: ARG002 - one kind of search
        """Return MANAGED: the scores are those of the service's reranker."""
        return MANAGED

    def configuration(self, count: int, filter_: dict[str, Any] | None, *, everything: bool) -> dict[str, Any]:
        """Return a managedSearchConfiguration. The service's reranker leaves out what it finds irrelevant."""
        restriction = {} if filter_ is None else {"filter": filter_}
        reranking = {"rerankingModelType": "NONE"} if everything else {}
        return {"managedSearchConfiguration": {"numberOfResults": count, **restriction, **reranking}}

    def as_indexed(self, filter_: Filter) -> Filter:
        """Replace the attributes of vector stores, and name documents by all their names."""
        return self._renamed(converted.as_indexed(filter_))

    def of_documents(self, uris: Sequence[str]) -> Filter:
        """Return a filter on the attribute of their names, in all forms."""
        return Clause(Operator.IN, MANAGED_SOURCE_URI_KEY, self._names(uris))

    def _renamed(self, filter_: Filter) -> Filter:
        match filter_:
            case And(members) | Or(members):
                return replace(filter_, members=tuple(map(self._renamed, members)))
            case Not(Clause(Operator.EQUALS | Operator.IN, key, _) as clause) if key == SOURCE_URI_KEY:
                # Every chunk has the attribute, and one clause is shorter than one for each name.
                return Clause(Operator.NOT_IN, MANAGED_SOURCE_URI_KEY, self._names(clause.values))
            case Not(member):
                return Not(self._renamed(member))
            case Clause(operator, key, value) if key == DATA_SOURCE_KEY:
                return Clause(operator, MANAGED_DATA_SOURCE_KEY, value)
            case Clause(operator, key, value) if key == SOURCE_URI_KEY:
                several = converted.SEVERAL.get(operator)
                if several is None:
                    return Clause(operator, MANAGED_SOURCE_URI_KEY, value)
                return Clause(several, MANAGED_SOURCE_URI_KEY, self._names(filter_.values))
            case Clause(_, key, _) if key.startswith(RESERVED_PREFIX):
                raise InvalidFilterError(
                    f"{filter_} cannot be used here: the knowledge base is of type MANAGED, which does not have this"
                    f" attribute; it has {SOURCE_URI_KEY}, {DATA_SOURCE_KEY} and those of the documents"
                )
        return filter_

    def _names(self, values: Iterable[Any]) -> tuple[str, ...]:
        uris = map(str, values)
        return tuple(
            name for uri in uris for name in ((uri, *s3_urls(uri, self._region())) if is_s3_uri(uri) else (uri,))
        )

    def hit(self, hit: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the attributes of a vector store to a hit's own, and name its document by its S3 URI."""
        metadata, location = hit.get("metadata") or {}, hit.get("location")
        # The location comes first, in case a sidecar can have the attribute, as in Amazon Kendra.
        named = document_uri({"location": location}) or metadata.get(MANAGED_SOURCE_URI_KEY) or hit.get("documentId")
        added: dict[str, Any] = {CHUNK_ID_KEY: _digest(hit.get("content"))}
        if named:
            uri = added[SOURCE_URI_KEY] = s3_uri_of_url(str(named)) or str(named)
            if is_s3_uri(uri):
                location = {"type": "S3", "s3Location": {"uri": uri}}
        if MANAGED_DATA_SOURCE_KEY in metadata:
            added[DATA_SOURCE_KEY] = metadata[MANAGED_DATA_SOURCE_KEY]
        pages = [metadata[key] for key in _PAGE_KEYS if key in metadata]
        if pages:
            added[PAGE_KEY] = pages[0]
        return {**hit, "metadata": {**metadata, **added}, "location": location}


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def form_of(vector_store: str, search_type: str | None, region: Callable[[], str]) -> Form:
    """Return the form of Retrieve for a vector store.

    Raises:
        ValueError: The store does not take the search type.
    """
    if vector_store != MANAGED:
        return VectorForm(vector_store, search_type)
    if search_type is not None:
        raise ValueError(
            f"search_type cannot be {search_type} for a knowledge base of type MANAGED: managed search is always"
            " hybrid; leave search_type out"
        )
    return ManagedForm(region)
