"""The words of a knowledge base's chunks, searched in its index of Amazon S3 Vectors.

Retrieve searches S3 Vectors by vectors alone. The index also finds words if it is in ENHANCED mode and has a text
search configuration for the key under which Bedrock writes the text of a chunk. It is searched next to Retrieve, and
:func:`combined` makes one ranking of both (docs/adr/0038).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Any, Final, Literal

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    ReadTimeoutError,
    UnknownServiceError,
)

from ragstack_common.core import clients
from ragstack_common.core.aws_errors import Meaning, meaning, public_reason
from ragstack_common.core.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    ConfigurationError,
    KnowledgeBaseNotFoundError,
    RetrievalError,
    RetrievalTimeoutError,
    ThrottledError,
)
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import is_s3_uri, resource_id
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.s3_vectors import to_s3_vectors
from ragstack_common.search.errors import describe
from ragstack_common.search.merge import best_first, identify
from ragstack_common.search.models import Ranking, RetrievedChunk
from ragstack_common.settings.names import METADATA_KEY, S3_VECTORS, SOURCE_URI_KEY, TEXT_KEY
from ragstack_common.settings.search import QuerySettings

OWN_KEYS: Final = frozenset({TEXT_KEY, METADATA_KEY})

PAGE_SIZE: Final = 100
"""Hits of one page of QueryVectors. Source: Amazon S3 user guide, S3 Vectors, limits."""

MAX_HITS: Final = 10_000
"""Maximum of ``topK``, over all pages; same source."""

REMEMBERED_SECONDS: Final = 300.0
"""Time until an index that cannot be searched by words is tried again; a build may take as long."""

HALF_BM25: Final = 26.0
"""A lexical signal of one half is this BM25: that of three words that only one of 6,000 chunks has.

The local Bedrock takes the number of its own chunks, which is not known here (``ranking.RARE_WORDS``).
"""

UNSEEN_SHARE: Final = 0.5
"""Share of the lowest cosine or BM25 among the candidates that others are taken to have.

Measured averages are .65 to .7 for the cosine and .35 for BM25. With MiniLM and 100 candidates of each, nDCG@10 is
.542 on CACM and .286 on filings; with the lowest cosine itself and a BM25 of 0, .538 and .232 (docs/adr/0038).
"""

PROBE: Final = "word"
"""Searched to see whether an index can be searched by words at all."""

Hit = Mapping[str, Any]
SearchType = Literal["HYBRID", "SEMANTIC"]

_RIGHTS: Final = "allow s3vectors:QueryVectors and s3vectors:GetVectors on the index to the process's role"
_NO_TEXT_SEARCH: Final = (
    f"the index has no text search configuration for {TEXT_KEY}, is still building it, or is in CLASSIC mode:"
    " call GetIndex to see which"
)
_MEANINGS: Final[Mapping[str, Meaning]] = {
    "AccessDeniedException": (AccessDeniedError, _RIGHTS),
    "NotFoundException": (CollectionNotFoundError, "check the name of the index, the account and the region"),
    "TooManyRequestsException": (ThrottledError, "send fewer requests a second"),
    "RequestTimeoutException": (RetrievalTimeoutError, "try again"),
    **dict.fromkeys(
        ("KmsDisabledException", "KmsInvalidKeyUsageException", "KmsInvalidStateException", "KmsNotFoundException"),
        (AccessDeniedError, "check the KMS key of the index"),
    ),
}
"""Source: the errors that botocore's model of s3vectors lists."""

_LASTING: Final = (AccessDeniedError, CollectionNotFoundError, ConfigurationError, KnowledgeBaseNotFoundError)
"""Errors that another call would also raise."""


@dataclass(frozen=True)
class WordsState:
    """How a knowledge base on S3 Vectors is searched, and if not by words, why and what to do."""

    search_type: SearchType
    reason: str | None = None


@dataclass(frozen=True)
class WordHit:
    """A chunk in the form of Retrieve's ``retrievalResults``, and its BM25, over 0."""

    result: Hit
    bm25: float


@dataclass(frozen=True)
class Page:
    """Hits, best first, the token of the next page, and how many hits there were before they were checked."""

    hits: tuple[WordHit, ...]
    next_token: str | None
    matches: int


class IndexWords:
    """The index of one knowledge base. Any thread may use it.

    Args:
        knowledge_base_id: The knowledge base; its storage configuration names the index if *index_arn* does not.
        index_arn: The index.
        timeout_seconds: Of one call.
        client: A boto3 client of s3vectors.
        agent: A boto3 client of bedrock-agent.
        clock: In seconds.

    Attributes:
        calls: Running calls that several searches share, by event loop and request.
    """

    def __init__(
        self,
        knowledge_base_id: str,
        index_arn: str | None = None,
        *,
        timeout_seconds: float,
        client: Any = None,
        agent: Any = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._knowledge_base_id = knowledge_base_id
        self._index_arn = index_arn
        self._timeout_seconds = timeout_seconds
        self._given_client = client
        self._given_agent = agent
        self._clock = clock
        self._problem: tuple[float, str] | None = None
        self.calls: dict[Hashable, Any] = {}

    @property
    def problem(self) -> str | None:
        """Why the index cannot be searched by words, as far as that is known and not too old."""
        if self._problem is None or self._clock() - self._problem[0] > REMEMBERED_SECONDS:
            return None
        return self._problem[1]

    def state(self) -> WordsState:
        """Search for a word, and return whether that is possible.

        Raises:
            RetrievalError: It cannot be known now.
        """
        self._problem = None
        try:
            self.page(PROBE, None, 1)
        except ConfigurationError as error:
            return WordsState("SEMANTIC", str(error))
        return WordsState("HYBRID")

    def page(self, text: str, restriction: Filter | None, count: int, token: str | None = None) -> Page:
        """Return the chunks that match words best: up to PAGE_SIZE of the first *count*, or those after a page.

        Raises:
            ConfigurationError: The index cannot be searched by words; the message says why and what to do.
            InvalidFilterError: S3 Vectors cannot express the filter.
            RetrievalError: The call failed.
        """
        if self.problem is not None:
            raise ConfigurationError(self.problem)
        request: dict[str, Any] = {
            "topK": count,
            "queryTexts": [{"text": text, "metadataKey": TEXT_KEY}],
            "returnMetadata": True,
            "returnScores": True,
        }
        if restriction is not None:
            request["filter"] = to_s3_vectors(restriction)
        if token is not None:
            request["nextToken"] = token
        try:
            answer = self._client().query_vectors(indexArn=self._index(), **request)
            hits = [hit for hit in map(_hit, _usable(answer["vectors"])) if hit.bm25 > 0]
        except Exception as error:
            LOGGER.warning("The search of the index by words failed: %s", describe(error, text, restriction))
            raise self._meant(error, is_probe=text == PROBE and restriction is None) from error
        # What negations find in lists, for example, is not documented.
        found = (hit for hit in hits if restriction is None or evaluate(restriction, hit.result["metadata"]))
        return Page(tuple(found), answer.get("nextToken"), len(hits))

    def _meant(self, error: Exception, *, is_probe: bool) -> Exception:
        """Return what a failure means; remember what lasts."""
        reason = self._lasting_reason(error, is_probe=is_probe)
        if reason is not None:
            self._problem = self._clock(), reason
            return ConfigurationError(reason)
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
            return RetrievalTimeoutError("QueryVectors did not answer in time; try again")
        kind, advice = meaning(error, _MEANINGS)
        return kind(f"QueryVectors failed: {public_reason(error)}; {advice}")

    def _lasting_reason(self, error: Exception, *, is_probe: bool) -> str | None:
        if isinstance(error, ConfigurationError):
            return str(error)
        if _code(error) == "ValidationException" and (is_probe or self.state().search_type == "SEMANTIC"):
            return self._problem[1] if self._problem else self._text_search()
        kind, advice = meaning(error, _MEANINGS)
        return f"{public_reason(error)}: {advice}" if issubclass(kind, _LASTING) else None

    def _text_search(self) -> str:
        """Return why the index has no text search, as exactly as the rights of this process allow."""
        try:
            index = self._client().get_index(indexArn=self._index())["index"]
        except (ClientError, BotoCoreError):
            return _NO_TEXT_SEARCH
        if index.get("indexMode") == "CLASSIC":
            return "the index is in CLASSIC mode: switch it to ENHANCED with UpdateIndexMode, which is free"
        searched = index.get("metadataConfiguration", {}).get("textSearchConfigurations", [])
        own = next((each for each in searched if each["metadataKey"] == TEXT_KEY), None)
        if own is None:
            return f"the index has no text search configuration for {TEXT_KEY}: deploy again, or add one"
        if own.get("status") == "BUILDING":
            return "the text search of the index is still being built: wait until it is ACTIVE"
        return "the index rejects word searches: see the log"

    def _index(self) -> str:
        """Return the index, which GetKnowledgeBase names once."""
        if self._index_arn is None:
            self._index_arn = self._discovered()
        return self._index_arn

    def _discovered(self) -> str:
        agent = self._given_agent or clients.agent_client()
        try:
            base = agent.get_knowledge_base(knowledgeBaseId=resource_id(self._knowledge_base_id))["knowledgeBase"]
        except ClientError as error:
            if _code(error) == "AccessDeniedException":
                raise ConfigurationError(
                    "the index is not known: set VECTOR_INDEX_ARN, or allow bedrock:GetKnowledgeBase on the knowledge"
                    " base to the process's role"
                ) from error
            raise
        storage = base.get("storageConfiguration", {})
        place = storage.get("s3VectorsConfiguration", {})
        if storage.get("type") != S3_VECTORS or not place:
            raise ConfigurationError(
                f"the knowledge base is not on S3 Vectors, but on {storage.get('type', 'a store of its own')}: correct"
                " VECTOR_STORE"
            )
        return place.get("indexArn") or f"{place['vectorBucketArn']}/index/{place['indexName']}"

    def _client(self) -> Any:
        """Return the client, which must know queryTexts."""
        try:
            client = self._given_client or clients.vectors_client(self._timeout_seconds)
            known = client.meta.service_model.operation_model("QueryVectors").input_shape.members
        except UnknownServiceError:
            known = {}
        if "queryTexts" not in known:
            raise ConfigurationError("the installed botocore cannot search by words: install 1.44.5 or later")
        return client


@cache
def words_of(knowledge_base_id: str, index_arn: str | None, timeout_seconds: float) -> IndexWords:
    """Return the index of a knowledge base of this process, which remembers what it learnt about it."""
    return IndexWords(knowledge_base_id, index_arn, timeout_seconds=timeout_seconds)


def state_of(settings: QuerySettings, *, client: Any = None, agent: Any = None) -> WordsState | None:
    """Return how the knowledge base of a deployment is searched; None if it is not known to be on S3 Vectors.

    Each call searches for a word.

    Args:
        settings: Those of the function `query`.
        client: A boto3 client of s3vectors; by default that of the process.
        agent: A boto3 client of bedrock-agent; by default that of the process.

    Raises:
        RetrievalError: It cannot be known now.
    """
    if settings.vector_store != S3_VECTORS:
        return None
    if settings.search_type == "SEMANTIC":
        return WordsState("SEMANTIC", "SEARCH_TYPE is SEMANTIC")
    return IndexWords(
        settings.knowledge_base_id,
        settings.vector_index_arn,
        timeout_seconds=settings.timeout_seconds,
        client=client,
        agent=agent,
    ).state()


def combined(
    vectors: Sequence[RetrievedChunk],
    words: Sequence[tuple[RetrievedChunk, float]],
    best_bm25: float,
    cosine_share: float,
    *,
    has_more: bool,
) -> list[RetrievedChunk]:
    """Make one ranking of what vectors and words found, best first.

    The score is ``cosine_share * cosine + (1 - cosine_share) * BM25 / best BM25``. A chunk that only one search found
    counts with UNSEEN_SHARE of the lowest cosine or BM25 that the other one found.

    Args:
        vectors: With cosines as scores.
        words: With the BM25 of each, best first.
        best_bm25: That of all that the caller may see, whatever the filters of the search.
        cosine_share: 0 to 1.
        has_more: Whether other chunks may have words of the query too; otherwise their BM25 is 0.
    """
    ids = {identify(chunk): chunk for chunk in vectors}
    texts = {identify(chunk, "text"): chunk for chunk in vectors}
    cosine = UNSEEN_SHARE * min((chunk.score for chunk in vectors), default=0.0)
    lowest = UNSEEN_SHARE * min((bm25 for _, bm25 in words), default=0.0) if has_more else 0.0
    found = {identify(chunk): (chunk, chunk.score, lowest) for chunk in vectors}
    for chunk, bm25 in reversed(words):  # the best of several parts of a chunk counts
        same = ids.get(identify(chunk)) or texts.get(identify(chunk, "text"))
        if same is not None:
            found[identify(same)] = same, same.score, bm25
        else:
            found[identify(chunk)] = chunk, cosine, bm25
    return best_first(_scored(*each, best_bm25, cosine_share) for each in found.values())


def _scored(chunk: RetrievedChunk, cosine: float, bm25: float, best_bm25: float, cosine_share: float) -> RetrievedChunk:
    parts = {
        "vector": cosine_share * cosine,
        "lexical": (1 - cosine_share) * (min(1.0, bm25 / best_bm25) if best_bm25 > 0 else 0.0),
    }
    score = min(1.0, sum(parts.values()))
    signals = {"vector": round(cosine, 4), "lexical": round(bm25 / (bm25 + HALF_BM25), 4)}
    return chunk.ranked(Ranking(base_score=score, score=score, signals=signals, contributions=parts))


def _usable(vectors: Sequence[Hit]) -> list[Hit]:
    """Return the vectors with text and BM25; raises RetrievalError if others are all that there is."""
    usable = [vector for vector in vectors if _text(vector) and _scores(vector)]
    if vectors and not usable:
        raise RetrievalError("none of the hits has a text and a score")
    return usable


def _text(vector: Hit) -> str:
    text = (vector.get("metadata") or {}).get(TEXT_KEY)
    return text if isinstance(text, str) else ""


def _scores(vector: Hit) -> Sequence[Mapping[str, Any]]:
    return (vector.get("scores") or {}).get("bm25Scores") or ()


def _hit(vector: Hit) -> WordHit:
    metadata = vector["metadata"]
    own = {key: value for key, value in metadata.items() if key not in OWN_KEYS}
    result = {"content": {"type": "TEXT", "text": _text(vector)}, "metadata": own}
    uri = own.get(SOURCE_URI_KEY)
    if isinstance(uri, str):
        result["location"] = _location(uri)
    return WordHit(result, max(float(each["score"]) for each in _scores(vector)))


def _location(uri: str) -> dict[str, Any]:
    if is_s3_uri(uri):
        return {"type": "S3", "s3Location": {"uri": uri}}
    if uri.startswith(("http://", "https://")):
        return {"type": "WEB", "webLocation": {"url": uri}}
    return {"type": "CUSTOM", "customDocumentLocation": {"id": uri}}


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
