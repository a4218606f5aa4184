"""What each signal of the lexical reranker counts."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Final

from ragstack_common.errors import ConfigurationError


@dataclass(frozen=True)
class RerankingWeights:
    """Factors on the signals, each finite and 0 or more; 0 leaves a signal out.

    Attributes:
        phrase: The query stands in the text word for word.
        frequency: Its keywords stand there, the more and the rarer the better.
        proximity: They stand close to each other.
        metadata: One attribute of the chunk matches; counted once for each that does.
        vector: What the search itself said.

    Raises:
        ConfigurationError: A factor is negative, infinite or no number.

    Source: The specification of the search pipeline, section 6, for all but ``vector``, which it does not weigh.
        Without it a good embedding's order is lost; it was chosen by nDCG@10 of the 50 best by cosine, of the hashed
        embedding and of all-MiniLM-L6-v2 in eight bits (no set was held out, so no gain of it is proof):

        ========= =================== ====== ===== ===== ===== =====
        embedding set                 before 0     .1    .3    1
        ========= =================== ====== ===== ===== ===== =====
        hashed    SciFact             .561   .618  .620  .629  .626
        hashed    CACM                .245   .314  .325  .332  .303
        hashed    AWS documentation   .403   .723  .721  .720  .687
        hashed    chunks of 400       .561   .631  .631  .632  .622
        MiniLM    SciFact             .646   .636  .666  .691  .698
        MiniLM    CACM                .395   .414  .448  .465  .456
        MiniLM    AWS documentation   .446   .790  .806  .800  .762
        MiniLM    chunks of 400       .576   .639  .659  .667  .652
        ========= =================== ====== ===== ===== ===== =====
    """

    phrase: float = 0.5
    frequency: float = 0.3
    proximity: float = 0.2
    metadata: float = 0.5
    vector: float = 0.3

    def __post_init__(self) -> None:
        """Refuse what is no factor."""
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigurationError(f"The reranking weight {name} must be finite and 0 or more, not {value!r}")


NAMES: Final = tuple(field.name for field in fields(RerankingWeights))

_in_force = RerankingWeights()


def configure_reranker(**weights: float) -> RerankingWeights:
    """Set the weights of every lexical reranker of this process that has none of its own.

    A weight that is not named has its default, whatever was set before: ``configure_reranker()`` restores all of them.
    A search that is under way keeps the weights that it began with.

    Args:
        weights: Fields of :class:`RerankingWeights`.

    Returns:
        The weights that are now in force.

    Raises:
        ConfigurationError: There is no such weight, or its value is unusable; nothing has changed then.
    """
    global _in_force  # noqa: PLW0603 - one frozen value is swapped for another
    unknown = sorted(set(weights) - set(NAMES))
    if unknown:
        raise ConfigurationError(
            f"There is no reranking weight {', '.join(unknown)}: the weights are {', '.join(NAMES)}"
        )
    _in_force = configured = RerankingWeights(**weights)
    return configured


def weights_in_force() -> RerankingWeights:
    """Return what :func:`configure_reranker` set last, or the defaults."""
    return _in_force
