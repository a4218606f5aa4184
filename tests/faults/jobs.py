"""Somebody who has everything compared while it changes, over HTTP and as the nightly rule does."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ragstack_common.registry.jobs import FULL, RECONCILE, JobKind
from tests.faults.document_client import DocumentClient
from tests.faults.faulty_stack import Places
from tests.faults.repeating import Repeating

NIGHTLY: Final = json.dumps({"start": RECONCILE, "by": "schedule"})
"""What the rule of infra/constructs/reconcile_function.py sends."""


class JobStarter(Repeating):
    """Starts one job after the other for as long as its context lasts, whether the one before has ended or not.

    The first is started in any case.

    Attributes:
        asked: How often which job was asked for in which way, and how often it was refused because of another.
    """

    def __init__(
        self, client: DocumentClient, places: Places, seconds_between: float, most: int, seed: int, *, full: bool
    ) -> None:
        """Bind where jobs are asked for.

        Args:
            client: Asks over HTTP.
            places: Has the queue that the rule sends to.
            seconds_between: Two jobs, on average.
            most: Jobs.
            seed: Of the times between.
            full: Whether the third is a full synchronisation.
        """
        super().__init__(seconds_between, seed, least=1)
        self.asked: Counter[str] = Counter()
        self._client = client
        self._places = places
        self._kinds = self._in_turn(full=full)
        self._most = most

    @staticmethod
    def _in_turn(*, full: bool) -> Iterator[JobKind | None]:
        """Name the kinds; None is the rule's way."""
        yield from (RECONCILE, None, *((FULL,) if full else ()))
        yield from itertools.cycle((RECONCILE, None))

    def act(self) -> bool:
        self._start(next(self._kinds))
        return self.asked.total() < self._most

    def _start(self, kind: JobKind | None) -> None:
        if kind is None:
            self._places.client("sqs").send_message(QueueUrl=self._places.queues["jobs"], MessageBody=NIGHTLY)
            self.asked["by the rule"] += 1
        else:
            self.asked[kind if self._client.start(kind) else f"{kind} refused"] += 1
