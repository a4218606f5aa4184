"""Erasure of what is stored of a person who left, or who asked for it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, Field, StringConstraints

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.people import People
from ragstack_common.access.policy import Principal
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.services.conversations import Conversations, is_person
from ragstack_common.services.gaps import Gaps

if TYPE_CHECKING:
    from collections.abc import Callable

_Issuer: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class PersonToErase(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A person, or a program, as GET /api/people names them."""

    principal: Annotated[Principal, StringConstraints(pattern=r"^(user|role|key):\S")] = Field(
        description="Such as user:alice"
    )
    former_issuers: list[_Issuer] = Field(
        default=[],
        max_length=10,
        description="Other issuers where the person signed in to this deployment before, with the same name, each"
        " written as it was configured. Their conversations there are deleted too",
        examples=[["https://login.example.com"]],
    )


class ErasedPerson(BaseModel, defer_build=True):
    """What was deleted. Judgments and changes of access rules are not, nor is anything in logs and backups."""

    principal: str
    conversations: int = Field(description="Conversations, with the links to them")
    issuers: list[str] = Field(
        description="Where the person signed in to have these conversations. Those of former issuers that the request"
        " did not name stay until they expire; programs have none"
    )
    gaps: int = Field(description="Questions in gaps, with reports and comments")
    seen: bool = Field(description="Whether the list of people had them")


@dataclass(frozen=True)
class Erasure:
    """Deletes what is stored of a person. Each part raises RegistryError; the request can be repeated."""

    guard: Guard
    people: People
    gaps: Gaps
    conversations: Conversations

    def erase(self, caller: Caller, person: PersonToErase) -> ErasedPerson:
        """Delete a person's conversations, gaps, and entry in the list of people, with audit events before and after.

        Raises:
            InvalidRequestError: People do not sign in to this deployment, and the request names no former issuer.
        """
        name = person.principal
        issuers = self._issuers(person)
        parts: dict[str, Callable[[], int]] = {
            "conversations": lambda: sum(self.conversations.erase(name, each) for each in issuers),
            "gaps": lambda: self.gaps.erase(name),
            "seen": lambda: self.people.forget(name),  # last, so that the list has them until all else is deleted
        }
        deleted: dict[str, Any] = {}
        self.guard.audit_erasure("erasure began", caller, name)
        try:
            for part, delete in parts.items():
                deleted[part] = delete()
        except Exception:
            left = ", ".join(part for part in parts if part not in deleted)
            self.guard.audit_erasure("erasure failed", caller, name, f"left: {left}")
            raise
        counts = ", ".join(f"{part}: {count}" for part, count in deleted.items())
        self.guard.audit_erasure("person erased", caller, name, counts)
        return ErasedPerson(principal=name, issuers=issuers, **deleted)

    def _issuers(self, person: PersonToErase) -> list[str]:
        """Return where a person has signed in, as far as it is known; programs never do."""
        if not is_person(person.principal):
            return []
        current = self.conversations.issuer
        if current is None and not person.former_issuers:
            raise InvalidRequestError(
                "People do not sign in to this deployment: name the issuer where they did as former_issuers"
            )
        return [*dict.fromkeys([*([] if current is None else [current]), *person.former_issuers])]
