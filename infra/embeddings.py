"""The embedding models with which the stacks can create a knowledge base."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Embedding(StrEnum):
    """What a deployer calls the models."""

    TITAN = "titan"
    COHERE = "cohere"
    NOVA = "nova"


@dataclass(frozen=True)
class EmbeddingModel:
    """A model that embeds documents and queries.

    Attributes:
        model_id: Its id, also at the end of its ARN.
        dimensions: The length of its vectors.
        has_choice: Whether it has vectors of several lengths, so that Bedrock is told which.
    """

    model_id: str
    dimensions: int
    has_choice: bool = True


MODELS: Final = {
    Embedding.TITAN: EmbeddingModel("amazon.titan-embed-text-v2:0", 1024),
    Embedding.COHERE: EmbeddingModel("cohere.embed-multilingual-v3", 1024, has_choice=False),
    Embedding.NOVA: EmbeddingModel("amazon.nova-2-multimodal-embeddings-v1:0", 1024),
}
"""Source of the lengths: Bedrock user guide, knowledge-base-supported (Titan, Cohere); third parties, who invoked the
model (Nova: 256, 384, 1,024 and 3,072)."""
