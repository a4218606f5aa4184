"""Starts jobs while documents change, over HTTP and as the nightly rule does."""

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
    """Starts at least one job, and others until its context ends, whether the one before has ended or not.

    *requested* counts the requests by kind and way, and those that were refused because of another job.
    """

    def __init__(
        self, client: DocumentClient, places: Places, seconds_between: float, most: int, seed: int, *, full: bool
    ) -> None:
        """Start *most* jobs, *seconds_between* each on average; the third is a full synchronisation if *full*."""
        super().__init__(seconds_between, seed, least=1)
        self.requested: Counter[str] = Counter()
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
        if (kind := next(self._kinds)) is None:
            self._places.client("sqs").send_message(QueueUrl=self._places.queues["jobs"], MessageBody=NIGHTLY)
            self.requested["by the rule"] += 1
        else:
            self.requested[kind if self._client.start(kind) else f"{kind} refused"] += 1
        return self.requested.total() < self._most
