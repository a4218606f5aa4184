"""Erasure of what is stored of a person who left, or who asked for it."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.people import People
from ragstack_common.access.policy import Principal
from ragstack_common.services.conversations import Conversations
from ragstack_common.services.gaps import Gaps


class PersonToErase(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A person, or a program, as GET /api/people names them."""

    principal: Annotated[Principal, StringConstraints(pattern=r"^(user|role|key):\S")] = Field(
        description="Such as user:alice"
    )


class ErasedPerson(BaseModel, defer_build=True):
    """What was deleted. Judgments and changes of access rules are not, nor is anything in logs and backups."""

    principal: str
    conversations: int = Field(description="Conversations, with the links to them")
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
        """Delete a person's conversations, gaps, and entry in the list of people, with an audit event."""
        name = person.principal
        self.guard.erased(caller, name)
        return ErasedPerson(
            principal=name,
            conversations=self.conversations.erase(name),
            gaps=self.gaps.erase(name),
            seen=self.people.forget(name),
        )
