"""The embedding models that can be added by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

MINILM: Final = "minilm"


@dataclass(frozen=True)
class KnownModel:
    """A model that can be added by name.

    Attributes:
        name: As ``--embedding`` takes it.
        folder: Its folder in the cache; part of the embedding's name.
        title: The published model.
        languages: What it was trained for.
        pooling: How its tokens become one vector.
    """

    name: str
    folder: str
    title: str
    languages: str
    licence: str
    dimension: int
    max_tokens: int
    pooling: Literal["mean", "cls"]


KNOWN: Final[Mapping[str, KnownModel]] = {
    model.name: model
    for model in (
        KnownModel(
            name=MINILM,
            folder="minilm-int8",
            title="sentence-transformers/all-MiniLM-L6-v2",
            languages="English",
            licence="Apache-2.0",
            dimension=384,
            max_tokens=256,
            pooling="mean",
        ),
        KnownModel(
            name="granite",
            folder="granite-multilingual",
            title="ibm-granite/granite-embedding-97m-multilingual-r2",
            languages="many languages",
            licence="Apache-2.0",
            dimension=384,
            max_tokens=512,
            pooling="cls",
        ),
    )
}
