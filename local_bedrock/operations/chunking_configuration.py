"""What a ``chunkingConfiguration`` may be, beyond what the service model says of each member."""

from typing import Final

from local_bedrock.faults import InvalidRequest
from local_bedrock.operations.context import Request

_CONFIGURATION_OF: Final = {
    "FIXED_SIZE": "fixedSizeChunkingConfiguration",
    "HIERARCHICAL": "hierarchicalChunkingConfiguration",
    "SEMANTIC": "semanticChunkingConfiguration",
    "NONE": None,
}


def check_chunking(chunking: Request | None) -> None:
    """Check a data source's chunking.

    Raises:
        InvalidRequest: The configuration of the strategy is missing, another one is there, or its sizes do not fit.
    """
    if chunking is None:
        return
    strategy = chunking["chunkingStrategy"]
    needed = _CONFIGURATION_OF[strategy]
    if needed and needed not in chunking:
        raise InvalidRequest(f"The chunking strategy {strategy} needs a {needed}")
    others = set(chunking) - {"chunkingStrategy", needed}
    if others:
        raise InvalidRequest(f"The chunking strategy {strategy} cannot have {sorted(others)}")
    if strategy == "HIERARCHICAL":
        _check_layers(chunking["hierarchicalChunkingConfiguration"])


def _check_layers(layers: Request) -> None:
    parent, child = (level["maxTokens"] for level in layers["levelConfigurations"])
    if child >= parent:
        raise InvalidRequest(
            f"The first of the levelConfigurations is the parent and must have more maxTokens than the second,"
            f" the child: they have {parent} and {child}"
        )
    if layers["overlapTokens"] >= child:
        raise InvalidRequest(
            f"The overlapTokens ({layers['overlapTokens']}) must be fewer than the maxTokens of a child chunk ({child})"
        )
