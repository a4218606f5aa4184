"""Gaps: requests and responses as JSON."""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field

from ragstack_common.core.times import Time

MAX_QUESTION_CHARACTERS: Final = 2000
MAX_COMMENT_CHARACTERS: Final = 2000
MAX_SETTINGS_CHARACTERS: Final = 4000

MAX_READ: Final = 20_000
"""Maximum number of items that a list reads: about 4 MB, for 1,000 read units, with questions of ten words."""

MAX_READ_CHARACTERS: Final = 8_000_000
"""Maximum length of their questions, comments and settings: 20,000 items could have 160 MB."""

MAX_GROUPS: Final = 500
MAX_COMMENTS: Final = 20

Outcome = Literal["no_answer", "bad", "reported"]
State = Literal["open", "answered", "dismissed"]


def _short(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    if settings is not None and len(json.dumps(settings)) > MAX_SETTINGS_CHARACTERS:
        raise ValueError(f"The settings are longer than {MAX_SETTINGS_CHARACTERS:,} characters as JSON")
    return settings


class GapReport(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A question whose answer is missing. Unknown names are rejected."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS)
    comment: str | None = Field(
        default=None, min_length=1, max_length=MAX_COMMENT_CHARACTERS, description="What is missing"
    )
    settings: Annotated[dict[str, Any] | None, AfterValidator(_short)] = Field(
        default=None, description="The other members of the request that had no good answer"
    )


class ReportedGap(BaseModel, defer_build=True):
    """The group of questions to which the report was added."""

    id: str
    question: str


class GapOutcomes(BaseModel, defer_build=True):
    """How the questions of a group ended."""

    no_answer: int = Field(description="Questions without an answer; counted if the setting `questions` is on")
    bad: int = Field(description="People who judged the answer as bad")
    reported: int = Field(description="People who reported the gap")


class GapComment(BaseModel, defer_build=True):
    """What a person wrote with a report."""

    text: str
    by: str
    at: Time


class Gap(BaseModel, defer_build=True):
    """Questions with the same words that had no good answer."""

    id: str
    question: str = Field(description="The latest wording")
    count: int = Field(
        description="How often it was asked; a report or judgment of a question that its author asked adds nothing"
    )
    people: int
    last_at: Time
    outcomes: GapOutcomes
    state: State = Field(description="An answered gap reopens when the question fails again")
    state_by: str | None = Field(description="Who changed the state last")
    comments: list[GapComment] = Field(description=f"The newest {MAX_COMMENTS}, one of each person")
    settings: dict[str, Any] | None = Field(description="The other members of the latest request, if they are known")


class GapList(BaseModel, defer_build=True):
    """The gaps that the caller may see, the most frequent first."""

    groups: list[Gap]
    left_out: int = Field(description=f"Groups after the first {MAX_GROUPS}")
    complete: bool = Field(
        description=f"False if there are more than {MAX_READ:,} entries, or very long ones: not all were read"
    )
    stores_questions: bool = Field(
        description="Whether questions without an answer are stored. If not, only reports and bad judgments count"
    )


class GapChange(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A new state of a gap."""

    state: State
