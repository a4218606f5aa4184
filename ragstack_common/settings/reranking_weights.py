"""The weights of the lexical reranker."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, InstanceOf

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.base import Allowed, json_object


@dataclass(frozen=True)
class RerankingWeights:
    """Factors on the signals of the lexical reranker, each finite and 0 or more; 0 leaves a signal out.

    Attributes:
        phrase: The query occurs in the text word for word.
        frequency: Its keywords occur there, the more and the rarer the better.
        proximity: They are close to each other.
        metadata: One attribute of the chunk matches; counted once for each that does.
        vector: The score of the search.

    Raises:
        ConfigurationError: A factor is negative, infinite or not a number.

    Source: The specification of the search pipeline, section 6, for all but ``vector``. Mean nDCG@10 of HYBRID and
        SEMANTIC over six judged sets (``hashed``; four with MiniLM): no reranker .618 and .532; a ``vector`` of 0 .556
        and .555, .3 .602 and .576, 1 .620 and .577, 2 .625 and .569, 5 .627 and .561. Chosen on the other sets (1 to
        3), it gives .609 on a set; .3 gives .606.
    """

    phrase: float = 0.5
    frequency: float = 0.3
    proximity: float = 0.2
    metadata: float = 0.5
    vector: float = 1.0

    def __post_init__(self) -> None:
        """Check the weights."""
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigurationError(f"The reranking weight {name} must be finite and 0 or more, not {value!r}")

    @classmethod
    def of(cls, weights: Mapping[str, Any]) -> Self:
        """Return weights by name; those that are left out have their defaults; raises ConfigurationError."""
        names = [field.name for field in fields(cls)]
        unknown = sorted(set(weights) - set(names))
        if unknown:
            raise ConfigurationError(
                f"There is no reranking weight {', '.join(unknown)}: the weights are {', '.join(names)}"
            )
        return cls(**weights)


def _parsed(value: Any) -> RerankingWeights:
    if isinstance(value, RerankingWeights):
        return value
    try:
        return RerankingWeights.of(json_object(value))
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


RerankingWeightsSetting = Annotated[
    InstanceOf[RerankingWeights],
    BeforeValidator(_parsed),
    Allowed("a JSON object with `phrase`, `frequency`, `proximity`, `metadata` or `vector`, each 0 or more"),
]
