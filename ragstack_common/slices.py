"""One slice of a search: what it asks of Retrieve, page by page, and what it reports."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ragstack_common import filters
from ragstack_common.errors import InvalidQueryError, InvalidRequestError
from ragstack_common.models import DeduplicateBy, SliceReport
from ragstack_common.ranking import distinct
from ragstack_common.retrieval_errors import describe, reason_of
from ragstack_common.settings import MAX_QUERY_CHARACTERS, MAX_RESULTS, OTHER_STORE
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from ragstack_common.deadline import Finished

CANDIDATES_PER_RESULT: Final = 4
"""Slices ask for this many times the results wanted, so that merging chunks of one document leaves enough."""

MAX_PAGED_RESULTS: Final = 1_000
"""Results of one search that reads pages. AWS documents no limit of nextToken; the local Bedrock ranks 1,000 chunks."""

FILTERED: Final = "filtered"
UNFILTERED: Final = "unfiltered"


class OutOfTime(Exception):  # noqa: N818 - it is no error of a call, but why the next one is not made
    """The deadline came between two pages."""


@dataclass(frozen=True)
class Slice:
    """A part of a search.

    Attributes:
        name: filtered or unfiltered.
        boost: Factor on its scores, 1 for none.
        filter: What its hits must match; None is nothing.
    """

    name: str
    boost: float
    filter: filters.Filter | None


@dataclass(frozen=True)
class Extent:
    """How far a slice reads.

    Attributes:
        page: Hits that one call asks for, 1 to 100.
        calls: Calls at most, one after the other, 1 or more.
        enough: Different documents or chunks after which no further call is made.
        deduplicate_by: Which of the two.
        ends_at: Reading of ``time.perf_counter`` after which no further call is made.
    """

    page: int
    calls: int
    enough: int
    deduplicate_by: DeduplicateBy
    ends_at: float


@dataclass
class Reading:
    """What has been read of a slice so far; the thread that reads adds to it.

    Attributes:
        hits: The service's ``retrievalResults``.
        pages: Calls that were answered.
        token: The service's ``nextToken`` after the last one.
    """

    hits: list[dict[str, Any]] = field(default_factory=list)
    pages: int = 0
    token: str | None = None


def check(query: str, knowledge_base_id: str, num_results: int, maximum: int, deduplicate_by: str) -> None:
    """Refuse what no search can be made of.

    Raises:
        InvalidQueryError: The query or *num_results* is out of range.
        InvalidRequestError: There is no knowledge base to ask.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidQueryError("The query is empty: ask something")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise InvalidQueryError(f"The query has {len(query)} characters; at most {MAX_QUERY_CHARACTERS} are taken")
    if not isinstance(knowledge_base_id, str) or not knowledge_base_id:
        raise InvalidRequestError(f"A search needs the id of a knowledge base, not {knowledge_base_id!r}")
    if isinstance(num_results, bool) or not isinstance(num_results, int) or not 1 <= num_results <= maximum:
        raise InvalidQueryError(f"The number of results must be 1 to {maximum}, not {num_results!r}")
    if deduplicate_by not in ("document", "chunk"):
        raise InvalidQueryError(f"deduplicate_by must be document or chunk, not {deduplicate_by!r}")


def slices_of(
    data_source_id: str | None,
    metadata_filter: Mapping[str, Any] | None,
    scope_filter: Mapping[str, Any] | None,
    boost: float | None,
    vector_store: str = OTHER_STORE,
) -> list[Slice]:
    """Divide a search into its slices.

    Args:
        data_source_id: Restricts every slice to one data source; None searches all of them.
        metadata_filter: What the query is about: restricts the filtered slice. None or empty is no such slice.
        scope_filter: What the caller may see: restricts every slice.
        boost: Factor on the scores of the filtered slice; None makes it the only one, without a boost.
        vector_store: One of ``settings.VECTOR_STORES``; a filter with an operator that it may ignore is rejected.

    Raises:
        InvalidFilterError: A filter is malformed, empty where that would let everything through, or not safe to send.
    """
    allowed = None if scope_filter is None else filters.parse(scope_filter)
    if allowed is not None:
        filters.check_vector_store(allowed, vector_store, restricts=True)
    scope = filters.all_of(filters.in_data_source(data_source_id), allowed)
    if not metadata_filter:
        return [Slice(UNFILTERED, 1.0, scope)]
    wanted = filters.parse(metadata_filter)
    filters.check_vector_store(wanted, vector_store, restricts=False)
    narrow = filters.all_of(scope, wanted)
    if boost is None:
        return [Slice(FILTERED, 1.0, narrow)]
    return [Slice(FILTERED, boost, narrow), Slice(UNFILTERED, 1.0, scope)]


def extent_of(num_results: int, deduplicate_by: DeduplicateBy, ends_at: float, *, pages: bool) -> Extent:
    """Decide how far slices read: one page of four times the results, or pages until there is enough."""
    candidates = num_results * CANDIDATES_PER_RESULT
    if not pages:
        return Extent(min(MAX_RESULTS, candidates), 1, num_results, deduplicate_by, ends_at)
    page = min(MAX_RESULTS, candidates if deduplicate_by == "document" else num_results)
    calls = math.ceil(min(MAX_PAGED_RESULTS, candidates) / page)
    return Extent(page, calls, num_results, deduplicate_by, ends_at)


def request_of(query: str, knowledge_base_id: str, part: Slice, count: int, search_type: str | None) -> dict[str, Any]:
    """Write a slice's first request.

    Raises:
        InvalidFilterError: Bedrock cannot express the filter.
    """
    search: dict[str, Any] = {"numberOfResults": count}
    if part.filter is not None:
        search["filter"] = filters.to_bedrock(part.filter)
    if search_type is not None:
        search["overrideSearchType"] = search_type
    return {
        "knowledgeBaseId": knowledge_base_id,
        "retrievalQuery": {"text": query},
        "retrievalConfiguration": {"vectorSearchConfiguration": search},
    }


def read(
    client: Any,
    request: Mapping[str, Any],
    extent: Extent,
    reading: Reading,
    clock: Callable[[], float] = time.perf_counter,
) -> Reading:
    """Ask for pages until there is enough or no more; what came before an error stays in the reading.

    Raises:
        OutOfTime: The deadline came between two pages.
        Exception: Whatever the client raised.
    """
    for number in range(extent.calls):
        if number and clock() >= extent.ends_at:
            raise OutOfTime
        answer = client.retrieve(**request)
        hits = answer.get("retrievalResults")
        if not isinstance(hits, list):
            raise TypeError("the answer holds no list of retrievalResults")
        reading.hits += hits
        reading.pages += 1
        reading.token = answer.get("nextToken")
        if not reading.token or distinct(reading.hits, extent.deduplicate_by) >= extent.enough:
            break
        request = {**request, "nextToken": reading.token}
    return reading


def report_on(part: Slice, end: "Finished[Reading]", reading: Reading, query: str) -> SliceReport:
    """Report on a slice, and log why it failed.

    One that missed a page is not ok, whatever the pages before it brought.
    """
    hits, before = len(reading.hits), f"after page {reading.pages}: " if reading.pages else ""
    if end.error is not None and not isinstance(end.error, OutOfTime):
        LOGGER.warning("slice %s: failed: %s%s", part.name, before, describe(end.error, query))
        return SliceReport(part.name, "failed", end.milliseconds, hits, before + reason_of(end.error))
    if end.value is None:
        LOGGER.warning("slice %s: timeout", part.name)
        return SliceReport(part.name, "timeout", end.milliseconds, hits, f"{before}no answer before the deadline")
    return SliceReport(part.name, "ok", end.milliseconds, hits)
