"""The settings of conversations."""

from pydantic import Field

from ragstack_common.settings.base import Settings


class ConversationSettings(Settings):
    """Whether the conversations of people are kept."""

    conversations: int = Field(
        90,
        ge=0,
        le=3650,
        description="days that [conversations](ANSWERS.md#conversations) of people who signed in are kept after their"
        " last turn; 0 keeps none",
    )
