"""Conversion of documents to vectors of S3 Vectors, and of vectors to chunks."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.retrieval.models import Ranking, RetrievedChunk
from ragstack_common.retrieval.scores import from_cosine_distance, from_squared_distance

if TYPE_CHECKING:
    from ragstack_common.embedding.protocol import Vectors

S3Document: TypeAlias = tuple[str, str, str, Mapping[str, Any]]
"""Id, text, source, metadata."""

BEDROCK_TEXT_KEY: Final = "AMAZON_BEDROCK_TEXT"
BEDROCK_SOURCE_KEY: Final = "x-amz-bedrock-kb-source-uri"
"""Keys of a Bedrock knowledge base. Source: user guide of Amazon Bedrock, S3 Vectors as a vector store.

Retrieve uses the second name; that it is stored under this name is an assumption.
"""

MAX_KEY: Final = 1024
"""Characters. Source: s3vectors, shape VectorKey."""

MAX_METADATA_BYTES: Final = 40 * 1024
MAX_FILTERABLE_BYTES: Final = 2048
MAX_METADATA_KEYS: Final = 50
MAX_VECTORS_IN_PUT: Final = 500
MAX_BYTES_IN_PUT: Final = 20 * 1024**2
"""Source of these limits: user guide of Amazon S3, limitations and restrictions of S3 Vectors."""

BYTES_OF_A_NUMBER: Final = 26
"""Upper bound for a float32 in JSON, with comma and space."""

BYTES_AROUND_A_VECTOR: Final = 100
"""Upper bound for names of members, braces and spaces."""

RANK_CONSTANT: Final = 60
BEST_FUSED: Final = 2 / (RANK_CONSTANT + 1)
"""Fused score of a hit that leads both rankings. Source: Cormack et al. 2009; S3 Vectors does not document its own."""


@dataclass(frozen=True)
class BedrockKeys:
    """Metadata keys of texts and sources: the chosen ones before Bedrock's."""

    content: str
    source: str

    @property
    def contents(self) -> tuple[str, str]:
        """Keys of texts."""
        return self.content, BEDROCK_TEXT_KEY

    @property
    def sources(self) -> tuple[str, str]:
        """Keys of sources."""
        return self.source, BEDROCK_SOURCE_KEY


@dataclass(frozen=True)
class IndexDescription:
    """The configuration of an index.

    Attributes:
        metric: cosine or euclidean.
        non_filterable: Metadata keys that filters cannot use.
        text_keys: Metadata keys with text search.
    """

    dimension: int
    metric: str
    non_filterable: frozenset[str]
    text_keys: frozenset[str]

    @classmethod
    def of(cls, index: Mapping[str, Any]) -> Self:
        """Read the answer of GetIndex."""
        configuration = index.get("metadataConfiguration", {})
        searched = configuration.get("textSearchConfigurations", []) if index.get("indexMode") == "ENHANCED" else []
        return cls(
            dimension=index["dimension"],
            metric=index["distanceMetric"],
            non_filterable=frozenset(configuration.get("nonFilterableMetadataKeys", [])),
            text_keys=frozenset(each["metadataKey"] for each in searched if each.get("status", "ACTIVE") == "ACTIVE"),
        )


def chunk_of(
    vector: Mapping[str, Any], keys: BedrockKeys, *, metric: str = "cosine", score: float | None = None
) -> RetrievedChunk:
    """Convert a vector of a response to a chunk.

    Args:
        vector: A vector with its metadata.
        keys: Metadata keys of text and source. Without a source, the vector's key is used.
        metric: The index's metric.
        score: Default: from the distance or the fused ranking.
    """
    metadata = dict(vector.get("metadata") or {})
    content = next((metadata[key] for key in keys.contents if key in metadata), "")
    source = next((metadata[key] for key in keys.sources if key in metadata), vector["key"])
    chunk = RetrievedChunk(
        content=str(content),
        score=_similarity(vector.get("distance"), metric) if score is None else score,
        source=str(source),
        metadata={name: value for name, value in metadata.items() if name not in (*keys.contents, keys.source)},
        chunk_id=vector["key"],
    )
    return chunk.ranked(_fused_ranking(vector, chunk.score)) if "fused" in vector.get("scores", {}) else chunk


def checked(
    documents: Sequence[S3Document], index: IndexDescription, keys: BedrockKeys
) -> list[tuple[str, dict[str, Any]]]:
    """Check documents, and return their ids and stored metadata.

    Raises:
        InvalidDocumentError: A document exceeds a limit, or an id is given twice.
    """
    records: dict[str, dict[str, Any]] = {}
    for id_, text, source, metadata in documents:
        if not isinstance(id_, str) or not 1 <= len(id_) <= MAX_KEY:
            raise InvalidDocumentError(f"An id has 1 to {MAX_KEY} characters, not {id_!r:.120}")
        if id_ in records:
            raise InvalidDocumentError(f"The id {id_!r:.120} is given twice")
        for key in metadata.keys() & {keys.content, keys.source}:
            raise InvalidDocumentError(
                f"The metadata of {id_!r:.120} has the key {key!r}, which the engine writes itself"
            )
        found = {name: value for name, value in metadata.items() if value != []}
        records[id_] = {**found, keys.content: text, keys.source: source}
        _check_metadata(id_, records[id_], index)
    return list(records.items())


def batches(
    records: Sequence[tuple[str, dict[str, Any]]], vectors: "Vectors", index: IndexDescription
) -> Iterator[list[dict[str, Any]]]:
    """Combine ids, metadata and vectors to batches within the limits of a request.

    Raises:
        InvalidDocumentError: A text has the zero vector, which has no cosine distance; nothing was yielded.
    """
    for (id_, _), vector in zip(records, vectors, strict=True):
        if index.metric == "cosine" and not vector.any():
            raise InvalidDocumentError(f"The text of {id_!r:.120} has no meaning to the embedding: leave it out")
    batch: list[dict[str, Any]] = []
    room = MAX_BYTES_IN_PUT
    for (id_, metadata), vector in zip(records, vectors, strict=True):
        size = len(vector) * BYTES_OF_A_NUMBER + len(json.dumps([id_, metadata])) + BYTES_AROUND_A_VECTOR
        if batch and (len(batch) == MAX_VECTORS_IN_PUT or size > room):
            yield batch
            batch, room = [], MAX_BYTES_IN_PUT
        batch.append({"key": id_, "data": {"float32": vector.tolist()}, "metadata": metadata})
        room -= size
    yield batch


def _check_metadata(id_: str, metadata: Mapping[str, Any], index: IndexDescription) -> None:
    for name, value in metadata.items():
        members = value if isinstance(value, list) else [value]
        if not isinstance(name, str) or not name or not all(map(_is_primitive, members)):
            raise InvalidDocumentError(
                f"The metadata of {id_!r:.120} must have at {name!r:.120} a string, a finite number, a boolean, "
                "or a list of them"
            )
    try:
        json.dumps([id_, metadata], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidDocumentError(f"{id_!r:.120} contains a lone surrogate, which is not valid Unicode") from None
    if len(metadata) > MAX_METADATA_KEYS:
        raise InvalidDocumentError(
            f"{id_!r:.120} has {len(metadata)} metadata keys, including text and source; "
            f"S3 Vectors takes {MAX_METADATA_KEYS}"
        )
    size = _size(metadata)
    if size > MAX_METADATA_BYTES:
        raise InvalidDocumentError(
            f"{id_!r:.120} has {size} bytes of text and metadata; S3 Vectors takes {MAX_METADATA_BYTES} (40 KB): "
            "split it into smaller chunks"
        )
    filterable = {name: value for name, value in metadata.items() if name not in index.non_filterable}
    if _size(filterable) > MAX_FILTERABLE_BYTES:
        largest = max(filterable, key=lambda name: _size({name: filterable[name]}))
        raise InvalidDocumentError(
            f"{id_!r:.120} has {_size(filterable)} bytes of filterable metadata; S3 Vectors takes "
            f"{MAX_FILTERABLE_BYTES} (2 KB): make the index with {largest!r} among its nonFilterableMetadataKeys"
        )


def _is_primitive(value: object) -> bool:
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _size(metadata: Mapping[str, Any]) -> int:
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


def _similarity(distance: float | None, metric: str) -> float:
    if distance is None:  # found by its words alone
        return 0.0
    return from_cosine_distance(distance) if metric == "cosine" else from_squared_distance(distance * distance)


def _fused_ranking(vector: Mapping[str, Any], similarity: float) -> Ranking:
    scores = vector["scores"]
    signals = {"fused": scores["fused"], "bm25": sum(each["score"] for each in scores.get("bm25Scores", []))}
    if "vectorDistance" in scores:
        signals["vector_distance"] = scores["vectorDistance"]
    return Ranking(base_score=similarity, score=scores["fused"] / BEST_FUSED, signals=signals)
