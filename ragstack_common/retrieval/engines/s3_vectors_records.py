"""Documents as vectors of S3 Vectors, and vectors as chunks."""

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
"""What a knowledge base of Bedrock writes. Source: user guide of Amazon Bedrock, S3 Vectors as a vector store.

The second is how Retrieve names a chunk's source; that it is stored under this name is assumed.
"""

LONGEST_KEY: Final = 1024
"""Characters. Source: s3vectors, shape VectorKey."""

MOST_METADATA_BYTES: Final = 40 * 1024
MOST_FILTERABLE_BYTES: Final = 2048
MOST_METADATA_KEYS: Final = 50
MOST_IN_A_PUT: Final = 500
MOST_BYTES_IN_A_PUT: Final = 20 * 1024**2
"""Source of the five: user guide of Amazon S3, limitations and restrictions of S3 Vectors."""

BYTES_OF_A_NUMBER: Final = 26
"""At most, of a float32 written as Python writes it, with comma and blank."""

BYTES_AROUND_A_VECTOR: Final = 100
"""Names of members, braces and blanks, generously."""

RANK_CONSTANT: Final = 60
RANKINGS: Final = 2
BEST_FUSED: Final = RANKINGS / (RANK_CONSTANT + 1)
"""Fused score of a hit that leads both rankings. Source: Cormack et al. 2009; S3 Vectors does not document its own."""


@dataclass(frozen=True)
class BedrockKeys:
    """Under which metadata keys a text and its source are found: those that were chosen, then Bedrock's."""

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
    """What a search needs to know of its index.

    Attributes:
        metric: cosine or euclidean.
        non_filterable: Metadata keys that filters may not name.
        text_keys: Metadata keys that are searched by words.
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
    """Turn a vector of an answer into a chunk.

    Args:
        vector: With its metadata.
        keys: Where text and source stand. A vector without a source is its own.
        metric: Of the index.
        score: By default that of the distance, or of the fused ranking.
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
    """Return ids and metadata of documents as they are put.

    Raises:
        InvalidDocumentError: A document is over a limit, or its id stands among them twice.
    """
    records: dict[str, dict[str, Any]] = {}
    for id_, text, source, metadata in documents:
        if not isinstance(id_, str) or not 1 <= len(id_) <= LONGEST_KEY:
            raise InvalidDocumentError(f"An id has 1 to {LONGEST_KEY} characters, not {id_!r:.120}")
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
    """Put ids, metadata and vectors together, as many at once as a request may have.

    Raises:
        InvalidDocumentError: A text has the zero vector, which cosine has no distance to; nothing was yielded.
    """
    for (id_, _), vector in zip(records, vectors, strict=True):
        if index.metric == "cosine" and not vector.any():
            raise InvalidDocumentError(f"The text of {id_!r:.120} says nothing that the embedding knows: leave it out")
    batch: list[dict[str, Any]] = []
    room = MOST_BYTES_IN_A_PUT
    for (id_, metadata), vector in zip(records, vectors, strict=True):
        size = len(vector) * BYTES_OF_A_NUMBER + len(json.dumps([id_, metadata])) + BYTES_AROUND_A_VECTOR
        if batch and (len(batch) == MOST_IN_A_PUT or size > room):
            yield batch
            batch, room = [], MOST_BYTES_IN_A_PUT
        batch.append({"key": id_, "data": {"float32": vector.tolist()}, "metadata": metadata})
        room -= size
    yield batch


def _check_metadata(id_: str, metadata: Mapping[str, Any], index: IndexDescription) -> None:
    for name, value in metadata.items():
        members = value if isinstance(value, list) else [value]
        if not isinstance(name, str) or not name or not all(map(_is_primitive, members)):
            raise InvalidDocumentError(
                f"The metadata of {id_!r:.120} has at {name!r:.120} something else than a string, a finite number, a "
                "boolean, or a list of them"
            )
    try:
        json.dumps([id_, metadata], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidDocumentError(f"{id_!r:.120} holds half of a surrogate pair, which is no character") from None
    if len(metadata) > MOST_METADATA_KEYS:
        raise InvalidDocumentError(
            f"{id_!r:.120} has {len(metadata)} metadata keys, text and source among them; "
            f"S3 Vectors takes {MOST_METADATA_KEYS}"
        )
    size = _size(metadata)
    if size > MOST_METADATA_BYTES:
        raise InvalidDocumentError(
            f"{id_!r:.120} has {size} bytes of text and metadata; S3 Vectors takes {MOST_METADATA_BYTES} (40 KB): "
            "cut it into smaller chunks"
        )
    filterable = {name: value for name, value in metadata.items() if name not in index.non_filterable}
    if _size(filterable) > MOST_FILTERABLE_BYTES:
        largest = max(filterable, key=lambda name: _size({name: filterable[name]}))
        raise InvalidDocumentError(
            f"{id_!r:.120} has {_size(filterable)} bytes of filterable metadata; S3 Vectors takes "
            f"{MOST_FILTERABLE_BYTES} (2 KB): make the index with {largest!r} among its nonFilterableMetadataKeys"
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
