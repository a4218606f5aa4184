"""The settings of access: who callers are, and where the rules about them are."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from ragstack_common.settings.base import Allowed, BusName, JsonObject, Settings, separated_names


class AuthKind(StrEnum):
    """How callers prove who they are."""

    IAM = "iam"
    API_KEY = "api_key"
    COGNITO = "cognito"
    OIDC = "oidc"
    NONE = "none"


class Tenants(StrEnum):
    """What separates the tenants of the access file: labels in one knowledge base, or a knowledge base of each."""

    LABEL = "label"
    INDEX = "index"


TOKEN_KINDS = frozenset({AuthKind.COGNITO, AuthKind.OIDC})
"""The kinds with tokens, which people have."""

NO_ACCESS_FILE: Final = "none"
"""Value instead of an access file, with which every caller may do and see everything."""

AuthKinds = Annotated[
    tuple[AuthKind, ...], BeforeValidator(separated_names), Allowed(f"one or more of {', '.join(AuthKind)}")
]
Names = Annotated[tuple[str, ...], BeforeValidator(separated_names), Allowed("names separated by commas")]


class AccessSettings(Settings):
    """Who calls, and where the rules about callers are."""

    api_auth: AuthKinds = Field((AuthKind.IAM,), description="how callers prove who they are, from `auth`")
    api_keys: JsonObject | None = Field(None, description="the names of the API keys by their ids")
    oidc_issuer: str | None = Field(None, description="the issuer of the tokens of people")
    oidc_audience: Names | None = Field(None, description="the audiences of tokens, of which each must have one")
    access_file: Path | None = Field(None, description="the access file; without one, every caller may do everything")
    questions_per_day: int = Field(
        1000, ge=0, le=10**9, description="questions that one person may ask in a day; 0 for no limit"
    )
    questions_per_day_of_program: int = Field(
        0,
        ge=0,
        le=10**9,
        description="questions that one IAM role or API key may ask in a day; 0 for no limit, because a role may"
        " ask for many people",
    )
    registry_table: str | None = Field(None, description="the document registry, which has the changes of the rules")
    audit_reads: bool = Field(
        default=False,
        description="record in the log [which documents each caller saw](OPERATIONS.md#audit), in searches and answers"
        " and by opening them. All logs are then kept, by default for a year, even if the stacks are deleted",
    )
    audit_bus: BusName | None = Field(
        None, description="event bus that gets audit events, which the log has in any case; the bus must exist"
    )

    @property
    def limits_questions(self) -> bool:
        """Whether questions are counted."""
        return bool(self.questions_per_day or self.questions_per_day_of_program)
