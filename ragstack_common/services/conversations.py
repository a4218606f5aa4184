"""Conversations: stored with each answer for the person who asked, and shown within the rights of the reader.

The function that answers stores a turn itself, so that clients cannot store an answer that was never given. An answer
repeats documents, so each reading checks these against the current rules, labels and deletions.
"""

import hashlib
import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import UUID

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.core.errors import ConversationNotFoundError, InvalidRequestError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.times import iso
from ragstack_common.registry.conversations import (
    MAX_CONVERSATIONS,
    MAX_KEPT_TURNS,
    Added,
    ConversationHead,
    ConversationTable,
    StoredTurn,
    TurnTooLargeError,
    UsedDocument,
)
from ragstack_common.registry.documents import DocumentRegistry, folded
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.services.conversation_models import (
    Conversation,
    ConversationLink,
    ConversationList,
    ConversationSummary,
    ConversationTurn,
    DeletedConversations,
    TitleChange,
    Withheld,
)
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.conversations import ConversationSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from ragstack_common.services.ask_models import AskRequest, AskResponse, KeptConversation

MAX_RESPONSE_CHARACTERS: Final = 4_000_000
"""Of the turns in a response. API Gateway takes 6 MB of a function, with quotation marks escaped once more."""

INDEXING_SECONDS: Final = 3600
"""A version that was uploaded less long before an answer may have been indexed after it."""

_PLACE: Final = re.compile(r"(?P<at>\d+\.\d{3})~(?P<id>[0-9a-f-]{36})", re.ASCII)
"""The last conversation of a page."""

_GONE: Final = frozenset({Status.DELETING, Status.DELETED})
_SECRET_BYTES: Final = 24
_PERSON_BYTES: Final = 16
_LINK_BYTES: Final = _PERSON_BYTES + 16 + _SECRET_BYTES

_NOT_A_PERSON: Final = "Only the conversations of people who signed in are kept"
_TURNED_OFF: Final = "This deployment keeps no conversations"
_WAS_DELETED: Final = "The conversation was deleted: begin another one"
_TOO_LARGE: Final = "The answer is too large to be kept"
_FAILED: Final = "The registry could not be written: the turn is not kept"

_OF_THE_MOMENT: Final = {"conversation": None, "missing": None}
"""Members of an answer that are not kept: what became of the turn, and documents that were not searchable then."""

_OF_THE_SEARCH: Final[Mapping[str, Any]] = {
    "slices": [],
    "inferred_filter": None,
    "corpora": [],
    "best_relevance": None,
    "notes": [],
}
"""What an answer says of its search depends on all documents that its owner saw, so other people do not receive it."""


class _Reading(NamedTuple):
    """A turn as a caller may read it; the response is None if it is withheld."""

    turn: StoredTurn
    content: Mapping[str, Any]
    withheld: Withheld | None
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Conversations:
    """Keeps and reads conversations. People of one name at different issuers are different people.

    Each method that reads or changes raises RegistryError if the table fails, and ConversationNotFoundError for a
    conversation that the caller does not have.
    """

    table: ConversationTable
    registry: DocumentRegistry
    guard: Guard
    issuer: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str], guard: Guard, table: str, client: "DynamoDBClient") -> Self:
        """Return the conversations in a registry's table, as the environment describes; raises ConfigurationError."""
        days, issuer = ConversationSettings.from_env(env).conversations, AccessSettings.from_env(env).oidc_issuer
        return cls(ConversationTable(client, table, days), DocumentRegistry(table, client), guard, issuer)

    def keep(
        self, caller: Caller, request: "AskRequest", response: "AskResponse", *, is_registered: bool
    ) -> "KeptConversation":
        """Add a question and its answer to the conversation that the request names. Errors are in the result alone.

        The search was of registered documents if the registry has their labels.
        """
        from ragstack_common.services.ask_models import KeptConversation, title_of  # noqa: PLC0415 - readers need none

        identifier, title = str(request.conversation), title_of(request.question)
        refused = KeptConversation(id=identifier, title=title, saved=False)
        if not self._is_kept(caller):
            return refused.model_copy(update={"reason": _TURNED_OFF if is_person(caller.name) else _NOT_A_PERSON})
        content, documents = self._content(request, response), self._documents(response, is_registered=is_registered)
        person = self._person(caller.name)
        try:
            added = self.table.add(person, identifier, title, request.question, content, documents)
        except TurnTooLargeError:
            return refused.model_copy(update={"reason": _TOO_LARGE})
        except Exception:  # noqa: BLE001 - the answer is given in any case
            LOGGER.exception("a turn of a conversation could not be written")
            return refused.model_copy(update={"reason": _FAILED})
        if added is None:
            return refused.model_copy(update={"reason": _WAS_DELETED})
        entry, what = added
        try:
            self.table.settle(person, what.head)
        except Exception:  # noqa: BLE001 - the next turn tries again
            LOGGER.exception("a conversation has turns that should be removed, or that expire early")
        return KeptConversation(id=identifier, title=what.head.title, saved=True, entry=entry, removed=_removed(what))

    def page(
        self, caller: Caller, *, query: str | None = None, limit: int = 50, token: str | None = None
    ) -> ConversationList:
        """List the caller's conversations, newest first: those that have each word of the query, if there is one.

        Raises:
            InvalidRequestError: The token is from another listing.
        """
        found = self._heads(caller)
        if query is not None:
            words = folded(query).split()
            found = [each for each in found if _has_words(each, words)]
        start = 0
        if token is not None:
            if not (place := _PLACE.fullmatch(token)):
                raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
            after = (-float(place["at"]), place["id"])
            start = sum((-each.updated_at, each.id) <= after for each in found)
        shown = found[start : start + limit]
        more = len(found) > start + limit
        return ConversationList(
            conversations=[_summary(each) for each in shown],
            next_token=f"{shown[-1].updated_at:.3f}~{shown[-1].id}" if more else None,
            enabled=self._is_kept(caller),
            days=self.table.days,
            max_conversations=MAX_CONVERSATIONS,
            max_turns=MAX_KEPT_TURNS,
        )

    def get(self, caller: Caller, identifier: UUID, token: str | None = None) -> Conversation:
        """Return a conversation of the caller with its turns; the token requests earlier ones."""
        person = self._own(caller, identifier)
        with reaching_the_registry():
            head = self.table.head(person, str(identifier))
        if head is None:
            raise _unknown(identifier)
        return self._shown(caller, person, caller.name, head, token)

    def shared(self, caller: Caller, link: str, token: str | None = None) -> Conversation:
        """Return the conversation behind a link, as far as the caller may see it.

        Raises:
            ConversationNotFoundError: There is no such link any more.
        """
        person, identifier, secret = _read_link(link)
        with reaching_the_registry():
            head = self.table.head(person, identifier)
        if head is None or head.secret is None or not hmac.compare_digest(head.secret, secret):
            raise ConversationNotFoundError("There is no such link: it was revoked, or its conversation was deleted")
        return self._shown(caller, person, None, head, token)

    def rename(self, caller: Caller, identifier: UUID, change: TitleChange) -> ConversationSummary:
        """Change the title of a conversation."""
        person = self._own(caller, identifier)
        with reaching_the_registry():
            head = self.table.rename(person, str(identifier), change.title)
        if head is None:
            raise _unknown(identifier)
        return _summary(head)

    def share(self, caller: Caller, identifier: UUID) -> ConversationLink:
        """Return the link to a conversation, which is made if there is none."""
        person = self._own(caller, identifier)
        with reaching_the_registry():
            head = self.table.share(person, str(identifier), token_hex(_SECRET_BYTES), caller.name)
        if head is None or head.secret is None:
            raise _unknown(identifier)
        return ConversationLink(link=_text(bytes.fromhex(person) + identifier.bytes + bytes.fromhex(head.secret)))

    def unshare(self, caller: Caller, identifier: UUID) -> ConversationLink:
        """Revoke the link to a conversation, if there is one."""
        person = self._own(caller, identifier)
        with reaching_the_registry():
            head = self.table.unshare(person, str(identifier))
        if head is None:
            raise _unknown(identifier)
        return ConversationLink(link=None)

    def delete(self, caller: Caller, identifier: UUID) -> DeletedConversations:
        """Delete a conversation with its link."""
        person = self._own(caller, identifier)
        with reaching_the_registry():
            existed = self.table.delete(person, str(identifier))
        if not existed:
            raise _unknown(identifier)
        return DeletedConversations(deleted=1)

    def delete_all(self, caller: Caller) -> DeletedConversations:
        """Delete all conversations of the caller."""
        return DeletedConversations(deleted=self.erase(caller.name, self.issuer) if is_person(caller.name) else 0)

    def erase(self, name: str, issuer: str | None) -> int:
        """Delete all conversations of a person, given their name as a caller and their issuer; return their number."""
        with reaching_the_registry():
            return self.table.delete_all(_key_of(issuer, name))

    def _is_kept(self, caller: Caller) -> bool:
        return bool(self.table.days) and is_person(caller.name)

    def _person(self, name: str) -> str:
        return _key_of(self.issuer, name)

    def _own(self, caller: Caller, identifier: UUID) -> str:
        """Return the key of a person who names a conversation; programs have none."""
        if not is_person(caller.name):
            raise _unknown(identifier)
        return self._person(caller.name)

    def _heads(self, caller: Caller) -> list[ConversationHead]:
        if not self._is_kept(caller):
            return []
        with reaching_the_registry():
            return self.table.heads(self._person(caller.name))

    def _content(self, request: "AskRequest", response: "AskResponse") -> str:
        """Write a turn as JSON: without the conversation before it, whose documents are checked in its own turns."""
        asked = request.model_dump(
            mode="json", exclude={"question", "chat_history", "conversation"}, exclude_unset=True
        )
        kept = {**response.model_dump(mode="json"), **_OF_THE_MOMENT}
        kept["sources"] = [each for each in kept["sources"] if each["cited"]]
        return json.dumps(
            {
                "question": request.question,
                "asked": asked,
                "response": kept,
                # Quotations depend on their sources alone; a model may repeat what the conversation said.
                "continues": bool(request.chat_history) and not response.answerer.quotes,
            }
        )

    def _documents(self, response: "AskResponse", *, is_registered: bool) -> list[UsedDocument]:
        """Return the documents from which an answer was made: those that it shows, or all that a model received."""
        attribute = None if self.guard.policy is None else self.guard.policy.attribute
        found = {}
        received = [each for each in response.sources if each.cited or not response.answerer.quotes]
        passages = [(each.source or "", each.metadata) for each in received]
        for uri, metadata in (*passages, *((each.source, each.metadata) for each in response.closest)):
            label = None if attribute is None else metadata.get(attribute)
            used = UsedDocument(uri, label if isinstance(label, str) else None, is_registered)
            found[used.uri] = used
        return [*found.values()]

    def _shown(
        self, caller: Caller, person: str, owner: str | None, head: ConversationHead, token: str | None
    ) -> Conversation:
        """Return a conversation to its owner, or to another caller if there is none."""
        with reaching_the_registry():
            turns = self.table.turns(person, head)
        readings = [*self._read(caller, turns)]
        entries = [each.turn.entry for each in readings]
        if token is not None and token not in entries:
            raise InvalidRequestError("next_token does not belong to this conversation: take it from the previous page")
        end = len(entries) if token is None else entries.index(token)
        shown: list[ConversationTurn] = []
        characters = 0
        for reading in reversed(readings[:end]):
            turn = _to_turn(reading, is_owner=owner is not None)
            characters += len(json.dumps(turn.model_dump()))
            if shown and characters > MAX_RESPONSE_CHARACTERS:
                break
            shown.insert(0, turn)
        self.guard.saw(
            "opened",
            caller,
            (
                document.uri
                for reading in readings[end - len(shown) : end]
                if reading.withheld is None
                for document in reading.turn.documents
            ),
        )
        return Conversation(
            **{**dict(_summary(head)), "turns": shown},
            owner=owner or head.owner or "",
            withheld_turns=sum(each.withheld is not None for each in readings),
            next_token=shown[0].entry if shown and len(shown) < end else None,
        )

    def _read(self, caller: Caller, turns: Sequence[StoredTurn]) -> Iterator[_Reading]:
        """Decide for each turn, oldest first, whether a caller may read its answer now."""
        used = {each.uri: each for turn in turns for each in (*turn.inherited, *turn.documents)}
        known = [each.uri for each in used.values() if each.is_registered]
        unknown = {each.uri: each.label for each in used.values() if not each.is_registered}
        checked = self.guard.check(caller, used, unknown)
        with reaching_the_registry():
            records = self.registry.read(known)
        reasons: dict[str, Withheld] = {}
        for uri, document in used.items():
            record = records.get(uri)
            if record is not None and (record.status in _GONE or record.revision == 0):
                # Callers who could not see the document do not learn that it was deleted.
                reasons[uri] = "deleted" if checked.rules.sees(caller, document.label) else "rights"
            elif uri in checked.hidden:
                reasons[uri] = "rights"

        def reasons_of(documents: Sequence[UsedDocument], changed: Collection[str]) -> set[Withheld]:
            found = {reasons[each.uri] for each in documents if each.uri in reasons}
            # The answer repeats the version that was replaced, and its label may have had fewer readers.
            hidden = any(each.uri in changed and not checked.rules.sees(caller, each.label) for each in documents)
            return found | {"rights"} if hidden else found

        earlier: set[Withheld] = set()
        for turn in turns:
            content = json.loads(turn.content)
            changed = [uri for uri in used if _has_changed(records.get(uri), turn.at)]
            earlier |= reasons_of(turn.inherited, changed)
            own = reasons_of(turn.documents, changed)
            found = own | (earlier if content["continues"] else set())
            withheld: Withheld | None = "rights" if "rights" in found else "deleted" if found else None
            earlier |= own
            named = () if withheld else tuple(each.uri for each in turn.documents if each.uri in changed)
            yield _Reading(turn, content, withheld, named)


def is_person(name: str) -> bool:
    """Whether a caller of this name signed in as a person."""
    return name.startswith("user:")


def _key_of(issuer: str | None, name: str) -> str:
    """Return the key of a person: callers of one name at different issuers have different ones."""
    text = json.dumps([issuer, name])
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * _PERSON_BYTES]


def _removed(added: Added) -> str | None:
    """Say what gave way to a turn."""
    if added.conversations_removed:
        return f"The oldest conversation was deleted: {MAX_CONVERSATIONS} of a person are kept"
    if added.turns_removed:
        return f"The oldest turn was deleted: {MAX_KEPT_TURNS} of a conversation are kept"
    return None


def _has_words(head: ConversationHead, words: Sequence[str]) -> bool:
    text = folded("\n".join((head.title, *head.questions.values())))
    return all(word in text for word in words)


def _has_changed(record: DocumentRecord | None, at: float) -> bool:
    """Whether a document has another version than the index had at a time."""
    if record is None or record.observed.last_modified is None:
        return False
    uploaded, indexed = record.observed.last_modified, record.finished_at or 0.0
    return uploaded > at or (indexed > at and uploaded > at - INDEXING_SECONDS)


def _summary(head: ConversationHead) -> ConversationSummary:
    return ConversationSummary(
        id=head.id,
        title=head.title,
        turns=len(head.questions),
        created_at=iso(head.created_at),
        updated_at=iso(head.updated_at),
        expires_at=iso(head.expires_at),
        shared=head.secret is not None,
    )


def _to_turn(reading: _Reading, *, is_owner: bool) -> ConversationTurn:
    content, response = reading.content, None
    if reading.withheld is None:
        response = {**content["response"], **({} if is_owner else _OF_THE_SEARCH)}
    return ConversationTurn(
        entry=reading.turn.entry,
        at=iso(reading.turn.at),
        question=content["question"],
        asked=content["asked"],
        response=response,
        withheld=reading.withheld,
        changed=[*reading.changed],
    )


def _unknown(identifier: UUID) -> ConversationNotFoundError:
    return ConversationNotFoundError(f"You have no conversation {identifier}")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _read_link(link: str) -> tuple[str, str, str]:
    """Return the person, the conversation and the secret in a link.

    Raises:
        ConversationNotFoundError: It has another form.
    """
    try:
        data = urlsafe_b64decode(link + "=" * (-len(link) % 4))
    except ValueError:
        data = b""
    if len(data) != _LINK_BYTES or _text(data) != link:
        raise ConversationNotFoundError("There is no such link: it was revoked, or its conversation was deleted")
    person, identifier, secret = data[:_PERSON_BYTES], data[_PERSON_BYTES:-_SECRET_BYTES], data[-_SECRET_BYTES:]
    return person.hex(), str(UUID(bytes=identifier)), secret.hex()
