"""The constants of the ranking. The defaults suit many collections; ``ragstack tune`` measures others on yours."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.settings import Allowed, json_object


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
        ConfigurationError: A factor is negative, infinite or no number.

    Source: The specification of the search pipeline, section 6, for all but ``vector``, without which a good
        embedding's order is lost (docs/EVALUATION.md).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    phrase: float = 0.5
    frequency: float = 0.3
    proximity: float = 0.2
    metadata: float = 0.5
    vector: float = 0.3

    def __post_init__(self) -> None:
        """Check the weights."""
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigurationError(f"The reranking weight {name} must be finite and 0 or more, not {value!r}")


class TrustParameters(BaseModel):
    """How the list with the metadata filter and the list without it become one.

    Source of the defaults: questions about company filings (docs/EVALUATION.md). With .5 for *one_name*, SEMANTIC loses
    .012 nDCG@10 on AWS guides, with .3 .008; the gain on filings is the same from .6 to .9 for *several_names*. With
    .7 for *best_matches* instead of 0, SEMANTIC keeps 72 instead of 64 % (``hashed``) and 61 instead of 41 % (MiniLM)
    of a right filter's gain on 400-character chunks, and a wrong filter loses the same; .6 and .8 give the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    prior: float = Field(
        0.35,
        ge=0,
        le=1,
        description="factor for an attribute that the question leaves open, if it names a value of another one",
    )
    newest_year: float = Field(0.8, ge=0, le=1, description="factor of the newest of several years named")
    earlier_year: float = Field(0.1, ge=0, le=1, description="factor of the earlier of several years named")
    veto: float = Field(
        0.3, ge=0, le=1, description="highest trust if most of the best unfiltered hits share another value"
    )
    veto_hits: int = Field(7, ge=1, le=10, description="number of the ten best unfiltered hits that counts as most")
    best_matches: float = Field(
        0.7, ge=0, le=1, description="lowest trust if the question names no value and the best unfiltered hit matches"
    )
    several_names: float = Field(
        0.7, ge=0, le=1, description="trust in an inferred filter if the question names several attributes"
    )
    one_name: float = Field(
        0.3,
        ge=0,
        le=1,
        description="the same if it names one, which may be only the topic",
    )
    rank_constant: float = Field(
        10, ge=1, le=1000, description="added to each rank: the larger it is, the less the first places count"
    )


class RankingParameters(BaseModel):
    """Everything about a ranking that a deployment can calibrate."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    trust: TrustParameters = TrustParameters()
    reranker: RerankingWeights = RerankingWeights()
    candidates: int = Field(50, ge=1, le=100, description="chunks that the lexical reranker orders")

    def value(self, path: str) -> float:
        """Return a parameter by its path, such as ``trust.prior``."""
        found: Any = self
        for name in path.split("."):
            found = getattr(found, name)
        return float(found)

    def changed(self, path: str, value: float) -> "RankingParameters":
        """Return a copy with another value of one parameter.

        Raises:
            ValueError: The value is out of range, or not whole for a parameter that counts.
        """
        group, _, name = path.rpartition(".")
        members = self.model_dump()
        (members[group] if group else members)[name] = value
        return _parsed(members)

    def changes(self) -> dict[str, Any]:
        """Return what differs from the defaults, as RANKING_PARAMETERS takes it."""
        found: dict[str, Any] = {}
        for path in described_parameters():
            if self.value(path) != DEFAULTS.value(path):
                group, _, name = path.rpartition(".")
                value = self.value(path)
                own = found.setdefault(group, {}) if group else found
                own[name] = int(value) if value.is_integer() else value
        return found


DEFAULTS: Final = RankingParameters()


def _parsed(value: Any) -> RankingParameters:
    """Read the parameters from JSON; those that it doesn't name have their defaults.

    Raises:
        ValueError: A parameter is unknown or out of range; the message names each.
    """
    if isinstance(value, RankingParameters):
        return value
    try:
        return RankingParameters.model_validate(json_object(value))
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False):
            name = ".".join(map(str, each["loc"]))
            is_unknown = each["type"] in ("extra_forbidden", "unexpected_keyword_argument")
            problems.append(f"there is no {name}" if is_unknown else f"{name}: {each['msg']}")
        raise ValueError("; ".join(problems)) from error


RankingParametersSetting = Annotated[
    RankingParameters, BeforeValidator(_parsed), Allowed("a JSON object of [ranking parameters](#ranking-parameters)")
]


def described_parameters() -> dict[str, FieldInfo]:
    """Return every parameter by its path, such as ``trust.prior``."""
    trust = {f"trust.{name}": field for name, field in TrustParameters.model_fields.items()}
    weight: Any = Annotated[float, Allowed("0 or more")]
    weights = {
        f"reranker.{each.name}": FieldInfo.from_annotated_attribute(
            weight,
            Field(each.default, description=f"weight of the signal `{each.name}` in the lexical reranker"),
        )
        for each in fields(RerankingWeights)
    }
    return trust | weights | {"candidates": RankingParameters.model_fields["candidates"]}
