"""Somebody who has everything compared while it changes, over HTTP and as the nightly rule does."""

import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Final, Self

from ragstack_common.registry.jobs import FULL, RECONCILE, JobKind
from tests.faults.document_client import DocumentClient
from tests.faults.faulty_stack import Places

NIGHTLY: Final = json.dumps({"start": RECONCILE, "by": "schedule"})
"""What the rule of infra/constructs/reconcile_function.py sends."""


class JobStarter:
    """Starts one job after the other for as long as its context lasts, whether the one before has ended or not.

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
        self.asked: Counter[str] = Counter()
        self._client = client
        self._places = places
        self._seconds = seconds_between
        self._kinds = itertools.islice(self._in_turn(full=full), most)
        self._chance = random.Random(seed)
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @staticmethod
    def _in_turn(*, full: bool) -> Iterator[JobKind | None]:
        """Name the kinds; None is the rule's way."""
        yield from (RECONCILE, None, *((FULL,) if full else ()))
        yield from itertools.cycle((RECONCILE, None))

    def _run(self) -> None:
        try:
            for kind in self._kinds:
                if self._enough.wait(self._chance.uniform(0.5, 1.5) * self._seconds):
                    return
                self._start(kind)
        except Exception as failure:  # noqa: BLE001 - whoever waits for this thread raises it
            self._failure = failure

    def _start(self, kind: JobKind | None) -> None:
        if kind is None:
            self._places.client("sqs").send_message(QueueUrl=self._places.queues["jobs"], MessageBody=NIGHTLY)
            self.asked["by the rule"] += 1
        else:
            self.asked[kind if self._client.start(kind) else f"{kind} refused"] += 1
