"""One slice of a search: what it asks of Retrieve, page by page, and what it reports."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from ragstack_common import filters
from ragstack_common.config import MAX_QUERY_CHARACTERS, MAX_RESULTS, OTHER_STORE
from ragstack_common.errors import InvalidFilterError, InvalidQueryError, InvalidRequestError
from ragstack_common.models import DeduplicateBy, SliceReport
from ragstack_common.retrieval.ranking import SOURCE_URI_KEY, distinct
from ragstack_common.retrieval_errors import describe, reason_of
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from ragstack_common.deadline import Finished

CANDIDATES_PER_RESULT: Final = 4
"""Slices ask for this many times the results wanted, so that merging chunks of one document leaves enough."""

MAX_PAGED_RESULTS: Final = 1_000
"""Results of one search that reads pages. AWS documents no limit of nextToken; the local Bedrock ranks 1,000 chunks."""

MORE_SEARCHES: Final = 20
"""Further calls of one slice for documents. Each finds one at least, and up to 100; a quick one takes 50 ms."""

ATTEMPTS: Final = 3
"""Times that an answer may be cut off; as many as botocore makes for a lost connection."""

CUT_OFF: Final = (ResponseParserError, TypeError, UnicodeDecodeError)
"""What an incomplete body becomes, in botocore or here. After a connection that ended early, botocore tries again."""

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
        calls: Calls for candidates at most, one after the other, 1 or more.
        enough: Different documents or chunks after which no further candidates are read.
        deduplicate_by: Which of the two.
        ends_at: Reading of ``time.perf_counter`` after which no further call is made.
        documents: Different documents that are worth further searches if the candidates hold fewer; 0 for none.
        least_score: Boosted score below which a document does not count.
    """

    page: int
    calls: int
    enough: int
    deduplicate_by: DeduplicateBy
    ends_at: float
    documents: int = 0
    least_score: float = -math.inf


@dataclass
class Reading:
    """What has been read of a slice so far; the thread that reads adds to it.

    Attributes:
        hits: The service's ``retrievalResults``.
        pages: Calls that were answered.
        token: The service's ``nextToken`` after the last page of candidates.
        exhausted: Whether the service has nothing more that could count.
    """

    hits: list[dict[str, Any]] = field(default_factory=list)
    pages: int = 0
    token: str | None = None
    exhausted: bool = False


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


def extent_of(
    num_results: int,
    deduplicate_by: DeduplicateBy,
    ends_at: float,
    *,
    pages: bool,
    documents: int | None = None,
    least_score: float = -math.inf,
) -> Extent:
    """Decide how far slices read for candidates: one page of four times the results, or pages until there is enough.

    Args:
        num_results: Documents or chunks wanted.
        deduplicate_by: Which of the two.
        ends_at: As in :class:`Extent`.
        pages: Whether candidates may take more than one page.
        documents: As in :class:`Extent`; None is *num_results* with one result for each document, and 0 without.
        least_score: As in :class:`Extent`.
    """
    if documents is None:
        documents = num_results if deduplicate_by == "document" else 0
    candidates = num_results * CANDIDATES_PER_RESULT
    wanted = candidates if deduplicate_by == "document" or not pages else num_results
    page = min(MAX_RESULTS, wanted)
    calls = math.ceil(min(MAX_PAGED_RESULTS, candidates) / page) if pages else 1
    return Extent(page, calls, num_results, deduplicate_by, ends_at, documents, least_score)


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
    part: Slice,
    clock: Callable[[], float] = time.perf_counter,
) -> Reading:
    """Read pages of candidates, then search on while they hold too few documents.

    A long document can fill all candidates. Further searches leave out the documents found so far, which takes one
    call however long they are; where Bedrock cannot express that, further pages are read. What came before an error
    stays in the reading.

    Raises:
        OutOfTime: The deadline came between two calls.
        Exception: Whatever the client raised.
    """
    for _ in range(extent.calls):
        _read_page(client, request, extent, reading, clock)
        enough = distinct(reading.hits, extent.deduplicate_by) >= extent.enough
        if enough and (extent.deduplicate_by == "document" or not extent.documents):
            return reading
        if enough or not reading.token:
            break
    excludes = True
    for _ in range(MORE_SEARCHES):
        if _has_enough(reading, extent, part):
            break
        further = _without_found(request, reading, part) if excludes else None
        if further is not None:
            excludes = _read_others(client, further, extent, reading, clock)
        elif reading.token:
            _read_page(client, request, extent, reading, clock)
        else:
            break
    return reading


def _has_enough(reading: Reading, extent: Extent, part: Slice) -> bool:
    if reading.exhausted or distinct(reading.hits, "document") >= extent.documents:
        return True
    # Whatever else there is scores lower than the last hit.
    reading.exhausted = bool(reading.hits) and _lowest(reading.hits) * part.boost < extent.least_score
    return reading.exhausted


def _read_page(
    client: Any, request: Mapping[str, Any], extent: Extent, reading: Reading, clock: Callable[[], float]
) -> None:
    """Read the next page of the ranking."""
    token = {"nextToken": reading.token} if reading.token else {}
    hits, reading.token = _answer(client, {**request, **token}, extent, reading, clock)
    reading.hits += hits
    reading.pages += 1
    reading.exhausted = not reading.token and len(hits) < extent.page


def _read_others(
    client: Any, request: Mapping[str, Any], extent: Extent, reading: Reading, clock: Callable[[], float]
) -> bool:
    """Search without the documents found so far; return whether that is a way to find others."""
    try:
        hits, token = _answer(client, request, extent, reading, clock)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "ValidationException":
            raise
        return False  # the filter is over a limit that the service does not document
    documents = distinct(reading.hits, "document")
    reading.hits += _below(hits, _lowest(reading.hits))
    reading.pages += 1
    reading.exhausted = not token and len(hits) < MAX_RESULTS
    return distinct(reading.hits, "document") > documents


def _without_found(request: Mapping[str, Any], reading: Reading, part: Slice) -> dict[str, Any] | None:
    """Write the request that leaves out the documents found so far; None if there is none within Bedrock's limits."""
    named = [(hit.get("metadata") or {}).get(SOURCE_URI_KEY) for hit in reading.hits]
    found = {uri for uri in named if isinstance(uri, str)}
    if not found or None in named:
        return None
    others = filters.Clause(filters.Operator.NOT_IN, SOURCE_URI_KEY, tuple(sorted(found)))
    condition = filters.all_of(part.filter, others)
    assert condition is not None
    try:
        compiled = filters.to_bedrock(condition)
    except InvalidFilterError:
        return None
    search = request["retrievalConfiguration"]["vectorSearchConfiguration"]
    search = {**search, "numberOfResults": MAX_RESULTS, "filter": compiled}
    return {**request, "retrievalConfiguration": {"vectorSearchConfiguration": search}}


def _answer(
    client: Any, request: Mapping[str, Any], extent: Extent, reading: Reading, clock: Callable[[], float]
) -> tuple[list[dict[str, Any]], str | None]:
    """Ask once, and again where the answer was cut off on its way; only the first call of all ignores the time."""
    for attempt in range(ATTEMPTS):
        if (attempt or reading.pages) and clock() >= extent.ends_at:
            raise OutOfTime
        try:
            answer = client.retrieve(**request)
            hits = answer.get("retrievalResults")
            if not isinstance(hits, list):
                raise TypeError("the answer holds no list of retrievalResults")
        except CUT_OFF:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return hits, answer.get("nextToken")
    raise AssertionError("the last attempt returns or raises")


def _lowest(hits: Iterable[Mapping[str, Any]]) -> float:
    return min(float(hit.get("score") or 0.0) for hit in hits)


def _below(hits: list[dict[str, Any]], lowest: float) -> list[dict[str, Any]]:
    """Bring scores of a search that left documents out below those of the ranking that it continues.

    An engine that scores by rank gives its best score to whatever leads a search. None of these chunks was among the
    best of the whole ranking, so none may score over the lowest of those; their order and proportions stay.
    """
    highest = max((float(hit.get("score") or 0.0) for hit in hits), default=0.0)
    if highest <= lowest:
        return hits
    return [{**hit, "score": float(hit.get("score") or 0.0) * lowest / highest} for hit in hits]


def report_on(part: Slice, end: "Finished[Reading]", reading: Reading, query: str) -> SliceReport:
    """Report on a slice, and log why it failed.

    One that missed a page is not ok, whatever the pages before it brought.
    """
    hits, before = len(reading.hits), f"after page {reading.pages}: " if reading.pages else ""
    if end.error is not None and not isinstance(end.error, OutOfTime):
        LOGGER.warning("slice %s: failed: %s%s", part.name, before, describe(end.error, query, part.filter))
        return SliceReport(part.name, "failed", end.milliseconds, hits, before + reason_of(end.error))
    if end.value is None:
        LOGGER.warning("slice %s: timeout", part.name)
        return SliceReport(part.name, "timeout", end.milliseconds, hits, f"{before}no answer before the deadline")
    return SliceReport(part.name, "ok", end.milliseconds, hits)
