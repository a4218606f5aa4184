"""Why a search finds a document, or does not: the first reason that applies.

For a document that the caller may not see, the explanation is that of a document that does not exist: the registry
decides first, and every search is the caller's own.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from ragstack_common.access.callers import Caller
from ragstack_common.core.deadline import in_thread, inner_deadline, wait_for
from ragstack_common.core.reporting import redacted_or_none
from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or, evaluate, parse, to_mongo
from ragstack_common.registry.records import SEARCHABLE, Status
from ragstack_common.search import RetrievedChunk, SearchOutcome
from ragstack_common.search.merge import best_relevance
from ragstack_common.services.document_views import DocumentNow
from ragstack_common.services.documents import Documents
from ragstack_common.services.explain_models import (
    ExcludingClause,
    ExplainDetails,
    ExplainRequest,
    ExplainResponse,
    Reason,
)
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse, to_passage
from ragstack_common.settings.names import BEDROCK_ENGINE

MAX_SHOWN: Final = 5
"""Maximum number of documents of similar names in a text; the details have all."""

_CONDITIONS: Final[Mapping[Operator, tuple[str, str]]] = {
    Operator.EQUALS: ("is", "is not"),
    Operator.NOT_EQUALS: ("is not", "is"),
    Operator.IN: ("is one of", "is none of"),
    Operator.NOT_IN: ("is none of", "is one of"),
    Operator.GREATER_THAN: ("is greater than", "is not greater than"),
    Operator.GREATER_THAN_OR_EQUALS: ("is at least", "is not at least"),
    Operator.LESS_THAN: ("is less than", "is not less than"),
    Operator.LESS_THAN_OR_EQUALS: ("is at most", "is not at most"),
    Operator.STARTS_WITH: ("starts with", "does not start with"),
    Operator.STRING_CONTAINS: ("contains", "does not contain"),
    Operator.LIST_CONTAINS: ("contains", "does not contain"),
}
"""Each operator in words, and its opposite."""


class _Found(NamedTuple):
    """Why a document is not found, as far as it is known."""

    reason: Reason
    text: str
    details: Mapping[str, Any] = {}
    rank: int | None = None
    candidates: int | None = None


@dataclass(frozen=True)
class Explanations:
    """Explains searches. The documents are None if only the index has them."""

    searches: QueryService
    documents: Documents | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str], searches: QueryService) -> "Explanations":
        """Find the documents that the environment names, if searches search them; raises ConfigurationError."""
        is_known = searches.is_registered and searches.settings.documents_bucket is not None
        return cls(searches, Documents.from_env(env) if is_known else None)

    def explain(self, request: ExplainRequest, caller: Caller) -> ExplainResponse:
        """Search, and explain why a document is among the results, or not.

        Raises:
            InvalidRequestError: The query, a filter or the corpus is invalid, or several documents have the name.
            RagStackError: A search, the registry or the bucket failed.
        """
        return wait_for(self._explained(request, caller))

    async def _explained(self, request: ExplainRequest, caller: Caller) -> ExplainResponse:
        uri, seen = request.document, None
        with inner_deadline(self.searches.settings.timeout_seconds):
            if self.documents is not None:
                uri, seen = await in_thread(partial(_seen, self.documents, caller, request.document))
            answer = await self.searches.retrieve_async(request, caller)
            found = _among(answer, uri)
            is_address = "://" in request.document  # of one document, not words of a name
            if found is None and seen is None and self.documents is not None and not is_address:
                uri, seen, found = await in_thread(partial(_alike, self.documents, caller, uri))
                found = found or _among(answer, uri)
            found = found or await self._missing(request, caller, uri, seen, answer)
        details = {"top_k": self.searches.top_k(request), **found.details}
        return ExplainResponse(
            document=uri,
            found=found.reason == "found",
            rank=found.rank,
            candidates=found.candidates,
            reason=found.reason,
            text=found.text,
            details=ExplainDetails(**details),
        )

    async def _missing(
        self, search: RetrieveRequest, caller: Caller, uri: str, seen: DocumentNow | None, answer: RetrieveResponse
    ) -> _Found:
        attributes: Mapping[str, Any] | None = None
        known: dict[str, Any] = {}
        documents = self.documents
        if documents is not None and documents.address(uri)[1] is not None:
            if seen is None:
                return _unknown(is_certain=await in_thread(lambda: documents.sees_everything(caller)))
            if (found := _unsearchable(seen)) is not None:
                return found
            attributes = seen.record.observed.attributes
            known = {"status": seen.record.status}
        own, deep = await asyncio.gather(
            self.searches.passages_of(uri, search.query, caller), self.searches.search(search, caller, deep=True)
        )
        found = self._unfound(search, uri, attributes, own, deep)
        is_complete = answer.complete and deep.complete
        again = "" if is_complete else " Some of its searches failed or were late, so try again."
        return found._replace(text=found.text + again, details={**known, **found.details})

    def _unfound(
        self,
        search: RetrieveRequest,
        uri: str,
        attributes: Mapping[str, Any] | None,
        own: Sequence[RetrievedChunk],
        deep: SearchOutcome,
    ) -> _Found:
        """Explain why a search does not find a document that is in the index, or should be."""
        place = next((place for place, chunk in enumerate(deep.chunks, 1) if chunk.source == uri), None)
        passages = [*own] if place is None else [deep.chunks[place - 1], *own]
        best = passages[0] if passages else None
        relevance = best_relevance(chunk.relevance for chunk in passages)
        details: dict[str, Any] = {
            "passage": best and to_passage(best, search.query),
            "score": best and best.ranked_by.score,
            "relevance": relevance,
            "min_relevance": search.min_relevance,
            "min_score": search.min_score,
        }
        # The index has the attributes by which searches filter; the registry has those that it should have.
        versions: list[Mapping[str, Any]] = [chunk.metadata for chunk in passages]
        versions = versions or ([] if attributes is None else [attributes])
        excluding = [*self._excluding(search, versions)] if place is None else []
        if excluding:
            return _Found("filtered out", _filtered_text(excluding), {**details, "filters": excluding})
        count, minimum = len(deep.chunks), search.min_relevance
        if minimum is not None and relevance is not None and relevance < minimum:
            text = f"Its relevance is {relevance:.2f}, and min_relevance is {minimum:g}: lower min_relevance."
            return _Found("below relevance", text, details, place, count)
        if place is not None:
            return self._below(search, place, count, details)
        if best is None and self.searches.settings.retrieval_engine == BEDROCK_ENGINE:
            text = "The index has no passage of it: upload the document again, or start a reconciliation."
        elif best is None:
            text = f"It is not among the {count} best results: check its name, or ask more specifically."
        else:
            text = (
                f"The index has passages of it, but it is not among the {count} candidates: ask more specifically, or"
                " raise top_k."
            )
        return _Found("not among candidates", text, details, None, count)

    def _below(self, search: RetrieveRequest, place: int, count: int, details: dict[str, Any]) -> _Found:
        top_k = self.searches.top_k(search)
        if place > top_k:
            text = (
                f"It has rank {place} of {count} candidates, and top_k is {top_k}: raise top_k to {place}, or ask more"
                " specifically."
            )
        elif search.min_score is not None:
            text = f"Its score is below min_score, which is {search.min_score:g}: lower min_score."
            return _Found("below relevance", text, details, place, count)
        else:
            text = (
                f"A deeper search ranks it {place} of {count}, but the search with top_k={top_k} had too few"
                " candidates to find it: raise top_k."
            )
        return _Found("ranked below", text, details, place, count)

    def _excluding(self, search: RetrieveRequest, versions: Sequence[Mapping[str, Any]]) -> Iterator[ExcludingClause]:
        """Yield the parts of filters that exclude a document, if they exclude all of its passages."""
        for name, filter_ in self.searches.required_by(search).items():
            if versions and not any(evaluate(filter_, each) for each in versions):
                for clause, holds in failing(filter_, versions[0]):
                    part = to_mongo(clause if holds else Not(clause))
                    value = versions[0].get(clause.key)
                    yield ExcludingClause(of=name, clause=part, attribute=clause.key, value=value)


def _seen(documents: Documents, caller: Caller, name: str) -> tuple[str, DocumentNow | None]:
    """Return the URI of a document, in the form that the bucket has, and the document if the caller sees it."""
    uri, key = documents.address(name)
    seen = None if key is None else documents.look(caller, key)
    return (uri if seen is None else seen.record.uri), seen


def _alike(documents: Documents, caller: Caller, name: str) -> tuple[str, DocumentNow | None, _Found | None]:
    """Look for the document whose key has the words of a name; say so if several have them."""
    _, words = documents.address(name)
    keys, are_all = ([], True) if words is None else documents.alike(caller, words)
    if len(keys) == 1 and are_all:
        return *_seen(documents, caller, keys[0]), None
    if not keys:
        return name, None, None
    shown = ", ".join(keys[:MAX_SHOWN]) + (", and others" if len(keys) > MAX_SHOWN or not are_all else "")
    several = _Found("several documents", f"Several documents have such a name: {shown}.", {"matches": keys})
    return name, None, several


def failing(filter_: Filter, attributes: Mapping[str, Any], *, holds: bool = True) -> list[tuple[Clause, bool]]:
    """Return the clauses because of which attributes do not pass a filter, or its opposite unless it *holds*.

    Returns:
        Each clause, with False if it is its opposite that does not pass. Empty if the filter passes.
    """
    if evaluate(filter_, attributes) is holds:
        return []
    match filter_:
        case And(members) | Or(members):
            return [found for member in members for found in failing(member, attributes, holds=holds)]
        case Not(member):
            return failing(member, attributes, holds=not holds)
        case Clause():
            return [(filter_, holds)]


def _among(answer: RetrieveResponse, uri: str) -> _Found | None:
    for rank, result in enumerate(answer.results, 1):
        if result.source == uri:
            text = f"It has rank {rank} of {len(answer.results)} results."
            return _Found("found", text, {"relevance": result.relevance, "score": result.score}, rank)
    return None


def _unknown(*, is_certain: bool) -> _Found:
    if is_certain:
        return _Found("not in the bucket", "There is no such document in the bucket: check its name, or upload it.")
    text = "There is no such document that you may see: check its name, or ask an operator which label it has."
    return _Found("not visible", text)


def _unsearchable(seen: DocumentNow) -> _Found | None:
    """Return why no search can find a document as it is in the bucket; None if searches can."""
    now = seen.as_it_is()
    status, details = now.status, {"status": now.status}
    waiting = f" {seen.waiting_for.rstrip('.')}." if seen.waiting_for else ""
    if status in (Status.DELETED, Status.DELETING) or seen.is_gone:
        return _Found("deleted", f"The document was deleted.{waiting}", details)
    if status is Status.FAILED:
        failure = redacted_or_none(now.reason)
        text = f"It could not be indexed: {(failure or 'the knowledge base gave no reason').rstrip('.')}."
        return _Found("failed", f"{text} Correct the cause, and upload it again.", {**details, "failure": failure})
    if status not in SEARCHABLE:
        return _Found("not processed yet", f"It is {status}, so try again in a while.{waiting}", details)
    return None


def _filtered_text(excluding: Iterable[ExcludingClause]) -> str:
    parts = []
    for each in excluding:
        own = f"has no {each.attribute}" if each.value is None else f"has {each.attribute} {_shown(each.value)}"
        parts.append(f"{each.of} requires that {_in_words(parse(each.clause))}, and the document {own}")
    return f"It is filtered out: {'; '.join(parts)}."


def _in_words(filter_: Filter, *, holds: bool = True) -> str:
    """Describe a clause or its opposite, such as: year is at least 2025."""
    match filter_:
        case Not(member):
            return _in_words(member, holds=not holds)
        case Clause(operator, key, value):
            condition, opposite = _CONDITIONS[operator]
            return f"{key} {condition if holds else opposite} {_shown(value)}"
    return json.dumps(to_mongo(filter_), ensure_ascii=False)  # clauses alone exclude a document


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return json.dumps(value, ensure_ascii=False)
