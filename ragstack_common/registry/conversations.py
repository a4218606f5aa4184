"""Conversations in the registry's table, each of one person.

The head of a conversation is in its person's partition: title, beginnings of the questions, and the secret of its link.
Its turns are in a partition of the conversation. A turn counts once the head names it. Everything is written so that a
function which is killed between two writes leaves nothing that can be read; what it leaves expires.

A deleted conversation leaves a head without content for a day, so that an answer that was under way does not bring the
conversation back.
"""

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.registry.deletions import delete_items
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.table import (
    CONVERSATION,
    EXPIRES_AT,
    PARTITION_KEY,
    SORT_KEY,
    Item,
    from_item,
    to_item,
)
from ragstack_common.registry.transactions import if_holds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_CONVERSATIONS: Final = 200
"""Of one person. A list reads all heads: 200 of some 1 KB, and of 60 KB with the most and the longest questions."""

MAX_KEPT_TURNS: Final = 50
"""Of one conversation."""

MAX_TURN_BYTES: Final = 380_000
"""Of a compressed turn. Source: DynamoDB developer guide, quotas: an item has 400 KB."""

MAX_LISTED_CHARACTERS: Final = 300
"""Of each question in the head, for lists and searches."""

DAY_SECONDS: Final = 86_400

_ENTRY_DIGITS: Final = 13
"""Of the milliseconds since 1970 with which an entry begins: enough until 2286."""

_LIVE: Final = (
    f"attribute_exists({PARTITION_KEY}) AND attribute_not_exists(deleted)"
    f" AND {EXPIRES_AT} > :now AND updated_at > :since"
)
_REPLACEABLE: Final = (
    f"attribute_not_exists({PARTITION_KEY}) OR {EXPIRES_AT} <= :now"
    " OR (attribute_not_exists(deleted) AND updated_at <= :since)"
)


class TurnTooLargeError(ValueError):
    """A turn is too large for an item of DynamoDB."""


class UsedDocument(NamedTuple):
    """A document from which an answer was made, with its label at that time.

    It is registered if the registry has it; otherwise, the label is the only one that is known.
    """

    uri: str
    label: str | None
    is_registered: bool


@dataclass(frozen=True)
class StoredTurn:
    """A question and its answer.

    Attributes:
        entry: Sorts the turns of a conversation by time.
        at: When it was stored, in seconds since 1970.
        content: JSON.
        documents: Those from which the answer was made.
        inherited: Those of turns before it that are not kept any more.
    """

    entry: str
    at: float
    content: str
    documents: tuple[UsedDocument, ...]
    inherited: tuple[UsedDocument, ...] = ()


@dataclass(frozen=True)
class ConversationHead:
    """A conversation without its answers.

    Attributes:
        questions: The beginnings of the questions, by the entries of their turns, oldest first.
        turns_expire_at: No turn expires before.
        secret: Of its link; None if it is not shared.
        owner: The name of its person, if it was shared.
    """

    id: str
    title: str
    created_at: float
    updated_at: float
    expires_at: float
    questions: Mapping[str, str]
    turns_expire_at: float
    secret: str | None = None
    owner: str | None = None


@dataclass(frozen=True)
class Added:
    """What the addition of a turn did: the conversation afterwards, and what gave way to it."""

    head: ConversationHead
    conversations_removed: int = 0
    turns_removed: int = 0


class ConversationTable:
    """Reads and writes conversations. *person* is a key of the caller's own for each; *days* are those it is kept.

    A conversation that has expired is treated as absent, also before DynamoDB removes it, and also if *days* were more
    when it was stored.
    """

    def __init__(self, client: "DynamoDBClient", table: str, days: int, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self.days = days

    def add(
        self,
        person: str,
        identifier: str,
        title: str,
        question: str,
        content: str,
        documents: Sequence[UsedDocument],
    ) -> tuple[str, Added] | None:
        """Add a turn to a conversation, which begins with it if there is none.

        Returns:
            The turn's entry, and what happened. None if the conversation was deleted a moment ago.

        Raises:
            TurnTooLargeError: The turn is not stored.
        """
        now = self._clock()
        entry = f"{int(now * 1000):0{_ENTRY_DIGITS}d}-{token_hex(4)}"
        packed, used = zlib.compress(content.encode()), _packed(documents)
        if len(packed) + len(used) > MAX_TURN_BYTES:
            raise TurnTooLargeError
        stored = {"content": packed, "documents": used, EXPIRES_AT: self._turn_expires_at(now)}
        place = _turn_key(person, identifier, entry)
        self._client.put_item(TableName=self._table, Item={**place, **to_item(stored)})
        listed = question[:MAX_LISTED_CHARACTERS]
        removed = 0
        item = self._extended(person, identifier, entry, listed, now)
        if item is None:
            removed = self._make_room(person, identifier)
            item = self._begun(person, identifier, entry, title, listed, now)
            # Another tab may have begun it meanwhile.
            item = item or self._extended(person, identifier, entry, listed, now)
        if item is None:
            self._client.delete_item(TableName=self._table, Key=place)
            return None
        head = self._head(item)
        return entry, Added(head, removed, max(0, len(head.questions) - MAX_KEPT_TURNS))

    def settle(self, person: str, head: ConversationHead) -> None:
        """Remove the turns over the limit, and keep the others as long as the conversation."""
        entries = [*head.questions]
        for place, entry in enumerate(entries[: max(0, len(entries) - MAX_KEPT_TURNS)]):
            self._remove_turn(person, head.id, entry, entries[place + 1])
        kept = entries[-MAX_KEPT_TURNS:]
        # Turns last a day longer than the head, so that they are renewed once a day, and not with each turn.
        if head.turns_expire_at < head.expires_at:
            expires = {":expires": self._turn_expires_at(self._clock())}
            for entry in kept[:-1]:
                self._update(
                    _turn_key(person, head.id, entry),
                    "SET #expires = :expires",
                    f"attribute_exists({PARTITION_KEY})",
                    {"#expires": EXPIRES_AT},
                    expires,
                )
            names = {"#turns": "turns_expire_at", "#questions": "questions"}
            self._update(
                _head_key(person, head.id), "SET #turns = :expires", "attribute_exists(#questions)", names, expires
            )

    def heads(self, person: str) -> list[ConversationHead]:
        """Return the conversations of a person, newest first."""
        now = self._clock()
        found = [self._head(item) for item in self._queried(_of_person(person)) if "deleted" not in item]
        return sorted((each for each in found if each.expires_at > now), key=lambda each: (-each.updated_at, each.id))

    def head(self, person: str, identifier: str) -> ConversationHead | None:
        """Return a conversation of a person; None if there is none."""
        answer = self._client.get_item(TableName=self._table, Key=_head_key(person, identifier), ConsistentRead=True)
        item = answer.get("Item")
        if item is None or "deleted" in item:
            return None
        head = self._head(item)
        return head if head.expires_at > self._clock() else None

    def turns(self, person: str, head: ConversationHead) -> list[StoredTurn]:
        """Return the turns of a conversation, oldest first."""
        found = self._queried(_of_conversation(person, head.id))
        return [_turn(item) for item in found if item[SORT_KEY]["S"] in head.questions]

    def rename(self, person: str, identifier: str, title: str) -> ConversationHead | None:
        """Change the title; return None if there is no such conversation."""
        return self._changed(person, identifier, "SET #title = :title", {"#title": "title"}, {":title": title})

    def share(self, person: str, identifier: str, secret: str, owner: str) -> ConversationHead | None:
        """Give the conversation a secret if it has none; return None if there is no such conversation."""
        names, values = {"#secret": "secret", "#owner": "owner"}, {":secret": secret, ":owner": owner}
        expression = "SET #secret = if_not_exists(#secret, :secret), #owner = :owner"
        return self._changed(person, identifier, expression, names, values)

    def unshare(self, person: str, identifier: str) -> ConversationHead | None:
        """Remove the secret; return None if there is no such conversation."""
        return self._changed(person, identifier, "REMOVE #secret, #owner", {"#secret": "secret", "#owner": "owner"}, {})

    def delete(self, person: str, identifier: str) -> bool:
        """Delete a conversation; return whether there was one. It cannot be read from the first write on."""
        tombstone = {"deleted": True, EXPIRES_AT: int(self._clock()) + DAY_SECONDS}
        existed = if_holds(
            lambda: self._client.put_item(
                TableName=self._table,
                Item={**_head_key(person, identifier), **to_item(tombstone)},
                ConditionExpression=f"attribute_exists({PARTITION_KEY}) AND attribute_not_exists(deleted)",
            )
        )
        # Also if an earlier call stopped here.
        self._delete_turns(person, identifier)
        return existed is not None

    def delete_all(self, person: str) -> int:
        """Delete the conversations of a person, also expired ones; return their number."""
        names = [item[SORT_KEY]["S"] for item in self._queried(_of_person(person))]
        return sum(self.delete(person, name) for name in names)

    def _turn_expires_at(self, now: float) -> int:
        return int(now) + (self.days + 1) * DAY_SECONDS

    def _extended(self, person: str, identifier: str, entry: str, question: str, now: float) -> Item | None:
        """Name a new turn in the head; return None if there is no such conversation."""
        return self._update(
            _head_key(person, identifier),
            "SET #questions.#entry = :question, #updated = :at, #expires = :expires",
            _LIVE,
            {"#questions": "questions", "#entry": entry, "#updated": "updated_at", "#expires": EXPIRES_AT},
            {":question": question, ":at": _seconds(now), ":expires": self._expires_at(now), **self._moment(now)},
        )

    def _begun(self, person: str, identifier: str, entry: str, title: str, question: str, now: float) -> Item | None:
        """Write the head of a new conversation; return None if there is one already, or was until a moment ago."""
        head = {
            "title": title,
            "created_at": _seconds(now),
            "updated_at": _seconds(now),
            EXPIRES_AT: self._expires_at(now),
            "turns_expire_at": self._turn_expires_at(now),
        }
        item = {**_head_key(person, identifier), **to_item(head), "questions": {"M": {entry: {"S": question}}}}
        written = if_holds(
            lambda: self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=_REPLACEABLE,
                ExpressionAttributeValues=to_item(self._moment(now)),
            )
        )
        return None if written is None else item

    def _make_room(self, person: str, identifier: str) -> int:
        """Delete the oldest conversations over the limit; return their number."""
        others = [each for each in self.heads(person) if each.id != identifier]
        return sum(self.delete(person, each.id) for each in others[MAX_CONVERSATIONS - 1 :])

    def _remove_turn(self, person: str, identifier: str, entry: str, following: str) -> None:
        """Remove a turn. The next one may repeat what it said, so it inherits the documents."""
        place = _turn_key(person, identifier, entry)
        item = self._client.get_item(TableName=self._table, Key=place, ConsistentRead=True).get("Item")
        if item is not None:
            turn = _turn(item)
            inherited = _packed(dict.fromkeys((*turn.inherited, *turn.documents)))
            self._update(
                _turn_key(person, identifier, following),
                "SET #inherited = :inherited",
                f"attribute_exists({PARTITION_KEY})",
                {"#inherited": "inherited"},
                {":inherited": inherited},
            )
        names = {"#questions": "questions", "#entry": entry}
        self._update(
            _head_key(person, identifier), "REMOVE #questions.#entry", "attribute_exists(#questions)", names, {}
        )
        self._client.delete_item(TableName=self._table, Key=place)

    def _changed(
        self, person: str, identifier: str, expression: str, names: Mapping[str, str], values: Mapping[str, Any]
    ) -> ConversationHead | None:
        moment = self._moment(self._clock())
        item = self._update(_head_key(person, identifier), expression, _LIVE, names, {**values, **moment})
        return None if item is None else self._head(item)

    def _update(
        self, key: Item, expression: str, condition: str, names: Mapping[str, str], values: Mapping[str, Any]
    ) -> Item | None:
        """Update an item; return it as it is afterwards, or None if the condition does not hold."""
        parameters: Any = {"ExpressionAttributeValues": to_item(values)} if values else {}
        answer = if_holds(
            lambda: self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeNames=dict(names),
                ReturnValues="ALL_NEW",
                **parameters,
            )
        )
        return None if answer is None else answer["Attributes"]

    def _delete_turns(self, person: str, identifier: str) -> None:
        keys = [
            {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
            for item in self._queried(
                _of_conversation(person, identifier), ProjectionExpression=f"{PARTITION_KEY}, {SORT_KEY}"
            )
        ]
        delete_items(self._client, self._table, keys)

    def _queried(self, partition: str, **options: Any) -> Iterator[Item]:
        condition, values = f"{PARTITION_KEY} = :partition", {":partition": partition}
        return query_items(self._client, self._table, condition, values, **options)

    def _expires_at(self, since: float) -> int:
        return int(since) + self.days * DAY_SECONDS

    def _moment(self, now: float) -> dict[str, Any]:
        """Return the values of the conditions on what is live."""
        return {":now": int(now), ":since": _seconds(now - self.days * DAY_SECONDS)}

    def _head(self, item: Item) -> ConversationHead:
        found = from_item(item)
        updated_at = float(found["updated_at"])
        return ConversationHead(
            id=found[SORT_KEY],
            title=found["title"],
            created_at=float(found["created_at"]),
            updated_at=updated_at,
            expires_at=min(float(found[EXPIRES_AT]), updated_at + self.days * DAY_SECONDS),
            questions=dict(sorted(found["questions"].items())),
            turns_expire_at=float(found["turns_expire_at"]),
            secret=found.get("secret"),
            owner=found.get("owner"),
        )


def _written_at(entry: str) -> float:
    return int(entry[:_ENTRY_DIGITS]) / 1000


def _seconds(at: float) -> float:
    return round(at, 3)


def _of_person(person: str) -> str:
    return f"{CONVERSATION}#{person}"


def _of_conversation(person: str, identifier: str) -> str:
    return f"{CONVERSATION}#{person}#{identifier}"


def _head_key(person: str, identifier: str) -> Item:
    return to_item({PARTITION_KEY: _of_person(person), SORT_KEY: identifier})


def _turn_key(person: str, identifier: str, entry: str) -> Item:
    return to_item({PARTITION_KEY: _of_conversation(person, identifier), SORT_KEY: entry})


def _turn(item: Item) -> StoredTurn:
    found = from_item(item)
    return StoredTurn(
        entry=found[SORT_KEY],
        at=_written_at(found[SORT_KEY]),
        content=zlib.decompress(found["content"]).decode(),
        documents=_unpacked(found["documents"]),
        inherited=_unpacked(found["inherited"]) if "inherited" in found else (),
    )


def _packed(documents: Sequence[UsedDocument] | Mapping[UsedDocument, None]) -> bytes:
    return zlib.compress(json.dumps([*documents], separators=(",", ":")).encode())


def _unpacked(packed: bytes) -> tuple[UsedDocument, ...]:
    return tuple(UsedDocument(*each) for each in json.loads(zlib.decompress(packed)))
