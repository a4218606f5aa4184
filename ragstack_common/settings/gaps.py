"""The settings of questions without a good answer."""

from pydantic import Field

from ragstack_common.settings.base import Settings


class GapSettings(Settings):
    """Which questions are kept for those who can add documents."""

    questions: bool = Field(
        default=False,
        description="keep each question without an answer for 90 days, for those who [can add"
        " documents](ANSWERS.md#gaps). Reports of gaps and answers that were judged as bad are kept in any case",
    )
