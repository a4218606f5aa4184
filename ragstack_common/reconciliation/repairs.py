"""Items of the registry that cannot be read, replaced by records that can, or removed.

Everything else that differs is put right by a look, for which the functions need the document's record. Where there
is none that can be read, this puts one there that says no more than that somebody must look. What the item held is
logged before, whole: it may be all that is left of somebody's work.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_common.errors import RegistryError
from ragstack_common.reconciliation.comparison import Unreadable
from ragstack_common.reconciliation.differences import Difference, Tally
from ragstack_common.reconciliation.suspects import Suspects
from ragstack_common.registry.documents import KEYS_PER_READ, DocumentRegistry
from ragstack_common.registry.items import Item, is_of_newer_version, record_of, uri_of
from ragstack_common.registry.replacement import made_anew
from ragstack_common.registry.table import id_in_key
from ragstack_common.telemetry import LOGGER

LOOK_DELAY_SECONDS: Final = 5.0
"""A look is sent before the record is written, so that none is lost in between, and comes after it."""

CHARACTERS_OF_A_SAMPLE: Final = 1000
CHARACTERS_OF_A_LINE: Final = 100_000
"""A line of the log takes 256 KB, and an item may have 400. Source: CloudWatch Logs user guide, quotas."""

_REFUSED: Final = ("ValidationException", "TransactionCanceledException")


class Repair(StrEnum):
    """What became of an item that cannot be read."""

    MADE_ANEW = "made_anew"
    """A record that says that somebody must look at the document stands in its place, and the look is sent."""
    REMOVED = "removed"
    """Neither the bucket nor the knowledge base has a document of that id."""
    LEFT_ALONE = "left_alone"
    """It is as it was, for the reason that the example gives."""


@dataclass(frozen=True)
class _Plan:
    """What is to become of an item: a look at its URI, nothing of it any more, or nothing for now."""

    item: Item
    fault: RegistryError
    uri: str | None
    keep: str | None = None

    @property
    def name(self) -> str:
        return self.uri or id_in_key(self.item)


class Repairs:
    """Deals with items that cannot be read, a hundred at a time, and says what became of each.

    Attributes:
        tally: How many items became what, with examples of what they held, shortened.
    """

    def __init__(
        self,
        registry: DocumentRegistry,
        suspects: Suspects,
        prefix: str,
        clock: Callable[[], float],
    ) -> None:
        """Bind the registry.

        Args:
            registry: Whose items they are.
            suspects: Counts differences, and sends looks.
            prefix: How the URIs of the documents bucket begin. What lies elsewhere is left alone.
            clock: Seconds since 1970.
        """
        self.tally = Tally(Repair)
        self._registry = registry
        self._suspects = suspects
        self._prefix = prefix
        self._clock = clock

    def repair(self, unreadable: Mapping[str, Unreadable], *, is_complete: bool, has_time: Callable[[], bool]) -> bool:
        """Deal with items that a comparison could not read.

        Args:
            unreadable: By the id that they are kept under, with what is known of the document from elsewhere.
            is_complete: Whether all of the bucket and of the knowledge base was read, so that a document that is
                not known from there is not there.
            has_time: Tells whether there is time for the next hundred.

        Returns:
            False where the time ended before all of them were dealt with.

        Raises:
            ClientError: The table or the queue cannot be reached.
            DeliveryError: The queue did not take the looks, several times.
            RegistryError: The table answered for a part only, several times.
        """
        rest: Iterator[str] = iter(unreadable)
        while batch := [*islice(rest, KEYS_PER_READ)]:
            if not has_time():
                return False
            items = self._registry.items(batch).values()
            self._carry_out([*self._plans(items, unreadable, is_complete=is_complete)])
        return True

    def _plans(
        self, items: Iterable[Item], unreadable: Mapping[str, Unreadable], *, is_complete: bool
    ) -> Iterator[_Plan]:
        for item in items:
            try:
                record_of(item)  # somebody may have put it right meanwhile
            except RegistryError as fault:
                known = unreadable[id_in_key(item)]
                uri = known.uri or uri_of(item)
                yield _Plan(item, fault, uri, self._why_not(item, known, uri, is_complete=is_complete))

    def _why_not(self, item: Item, known: Unreadable, uri: str | None, *, is_complete: bool) -> str | None:
        """Tell why an item has to be left alone; None where it can be replaced."""
        if is_of_newer_version(item):
            return "a newer version wrote it"
        if uri is not None and not uri.startswith(self._prefix):
            return "the document lies in another bucket"
        if known.is_worked_on:
            return "the knowledge base is at work on the document: reconcile again when it is done"
        if uri is None and not is_complete:
            return "the time ended before it was known which document it is about"
        return None

    def _carry_out(self, plans: Iterable[_Plan]) -> None:
        possible = []
        for plan in plans:
            self._suspects.differences.add(Difference.UNREADABLE, [plan.name])
            if plan.keep is None:
                _log(plan)
                possible.append(plan)
            else:
                self._keep(plan, plan.keep)
        self._suspects.send([plan.uri for plan in possible if plan.uri is not None], LOOK_DELAY_SECONDS)
        for plan in possible:
            self._replace(plan)

    def _replace(self, plan: _Plan) -> None:
        now, uri = self._clock(), plan.uri
        record = None if uri is None else made_anew(plan.item, uri, "Its record could not be read: made anew", now)
        try:
            is_written = self._registry.replace(plan.item, record)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in _REFUSED:
                raise
            self._keep(plan, f"the table does not take another ({code})")
            return
        if not is_written:
            self._keep(plan, "somebody else wrote it meanwhile")
            return
        done = Repair.MADE_ANEW if record else Repair.REMOVED
        LOGGER.warning("The record of %s was %s", plan.name, done.replace("_", " "))
        self.tally.add(done, [f"{plan.name}: it held {_shortened(plan.item)}"])

    def _keep(self, plan: _Plan, reason: str) -> None:
        LOGGER.warning("%s is left alone: %s. %s", plan.name, reason, plan.fault)
        self.tally.add(Repair.LEFT_ALONE, [f"{plan.name}: {reason}"])


def _log(plan: _Plan) -> None:
    held = _written(plan.item)
    parts = [held[at : at + CHARACTERS_OF_A_LINE] for at in range(0, len(held), CHARACTERS_OF_A_LINE)]
    for number, part in enumerate(parts, start=1):
        LOGGER.warning("%s. It held (part %d of %d): %s", plan.fault, number, len(parts), part)


def _shortened(item: Item) -> str:
    held = _written(item)
    return held if len(held) <= CHARACTERS_OF_A_SAMPLE else f"{held[:CHARACTERS_OF_A_SAMPLE]} ..."


def _written(item: Mapping[str, Any]) -> str:
    """Write an item as JSON, as the log and the report take it; bytes are written as Python does."""
    return json.dumps(item, default=repr, sort_keys=True)
