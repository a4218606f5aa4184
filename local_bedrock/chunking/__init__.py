"""A document's text cut into chunks, by the strategy of its data source."""

from collections.abc import Mapping
from typing import Any

from local_bedrock.chunking.fixed_size import FixedSize, Whole
from local_bedrock.chunking.hierarchical import Hierarchical
from local_bedrock.chunking.pieces import Chunk, Embed, Pieces, Strategy
from local_bedrock.chunking.semantic import Semantic
from local_bedrock.chunking.sentences import count_tokens

__all__ = [
    "Chunk",
    "Embed",
    "FixedSize",
    "Hierarchical",
    "Pieces",
    "Semantic",
    "Strategy",
    "Whole",
    "count_tokens",
    "strategy",
]


def strategy(vector_ingestion: Mapping[str, Any] | None) -> Strategy:
    """Read the ``vectorIngestionConfiguration`` of a data source."""
    chunking = (vector_ingestion or {}).get("chunkingConfiguration", {})
    match chunking.get("chunkingStrategy"):
        case "NONE":
            return Whole()
        case "FIXED_SIZE":
            fixed = chunking["fixedSizeChunkingConfiguration"]
            return FixedSize(fixed["maxTokens"], fixed["overlapPercentage"])
        case "HIERARCHICAL":
            layers = chunking["hierarchicalChunkingConfiguration"]
            parent, child = (level["maxTokens"] for level in layers["levelConfigurations"])
            return Hierarchical(parent, child, layers["overlapTokens"])
        case "SEMANTIC":
            semantic = chunking["semanticChunkingConfiguration"]
            return Semantic(semantic["maxTokens"], semantic["bufferSize"], semantic["breakpointPercentileThreshold"])
        case _:
            return FixedSize()
