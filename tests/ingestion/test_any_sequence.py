"""After any sequence of changes, events, kills and failures, bucket, registry, index and catalogue agree at rest."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.settings.names import MANAGED, OTHER_STORE
from tests.ingestion.queues import PolledQueue
from tests.ingestion.services import Killed, lost
from tests.ingestion.world import World
from tests.support.soak import SOAK

EXAMPLES = 150 if SOAK else 5
"""A short run always has the same ones."""

NAMES = st.sampled_from(["a.txt", "b c+ü.md", "c.eml", "text.docx"])
TEXTS = st.sampled_from(["granite is hard", "granite is grey", "granite is old", "\n"])
SIDECARS: Any = st.sampled_from(
    [{"corpus": "stones"}, {"corpus": "woods", "tags": ["a", "b"], "year": 2026, "good": True}, {}, b"no JSON"]
)
CHANGES = st.one_of(
    st.tuples(st.just("put"), NAMES, TEXTS),
    st.tuples(st.just("put_sidecar"), NAMES, SIDECARS),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("delete_sidecar"), NAMES),
)
PLACES = st.integers(0, 7)
EVERYTHING: frozenset[int] = frozenset()
CHOSEN = st.just(EVERYTHING) | st.frozensets(PLACES, max_size=3)
"""The chosen messages among those that are due; empty for all."""


DISTURBANCES = st.one_of(
    st.none(),
    st.none(),
    st.sampled_from(["kill", "throttle", "lose the answer", "ingest", "convert", "follow", "settle"]),
    CHANGES,
)
Process = Callable[[list[QueueMessage]], list[str]]


class AnySequence(RuleBasedStateMachine):
    """Changes of the bucket, events, both functions, time, and disturbances."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.dropped = False

    @rule(change=CHANGES, announced=st.booleans())
    def the_bucket_changes(self, change: tuple[Any, ...], announced: bool) -> None:
        method, *arguments = change
        getattr(self.world, method)(*arguments)
        if announced:
            self.world.announce(self.world.events.pop())

    @rule(change=CHANGES, meanwhile=CHANGES, step=st.integers(1, 24))
    def a_document_changes_during_its_submission(
        self, change: tuple[Any, ...], meanwhile: tuple[Any, ...], step: int
    ) -> None:
        """A document changes while the function makes its calls; the event is read before the operation ends."""
        self.the_bucket_changes(change, announced=True)
        self.ingestion_runs(frozenset(), step, meanwhile)
        self.world.announce()
        self.ingestion_runs(frozenset(), step, None)

    @precondition(lambda self: self.world.events)
    @rule(place=PLACES, fate=st.sampled_from(["all", "once", "twice", "never"]))
    def an_event_is_delivered(self, place: int, fate: str) -> None:
        if fate == "all":
            self.world.announce()
            return
        event = self.world.events.pop(place % len(self.world.events))
        if fate == "never":
            self.dropped = True
        else:
            self.world.announce(*[event] * (2 if fate == "twice" else 1))

    @rule(chosen=CHOSEN, step=st.integers(1, 24), disturbance=DISTURBANCES)
    def ingestion_runs(self, chosen: frozenset[int], step: int, disturbance: Any) -> None:
        self.run(self.world.ingestion_queue, self.world.ingestion, chosen, step, disturbance)

    @rule(chosen=CHOSEN, step=st.integers(1, 12), disturbance=DISTURBANCES, settled=st.booleans())
    def following_runs(self, chosen: frozenset[int], step: int, disturbance: Any, settled: bool) -> None:
        if settled:
            self.world.settle()
        self.run(self.world.status_queue, self.world.following, chosen, step, disturbance)

    @rule(chosen=CHOSEN, step=st.integers(1, 12), disturbance=DISTURBANCES)
    def comparing_runs(self, chosen: frozenset[int], step: int, disturbance: Any) -> None:
        self.run(self.world.receipts_queue, self.world.comparing, chosen, step, disturbance)

    @rule(chosen=CHOSEN, step=st.integers(1, 16), disturbance=DISTURBANCES)
    def converting_runs(self, chosen: frozenset[int], step: int, disturbance: Any) -> None:
        self.run(self.world.conversion_queue, self.world.converting, chosen, step, disturbance)

    @rule(seconds=st.sampled_from([1.0, 5.0, 30.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.aws.clock.now += seconds

    @precondition(lambda self: self.world.status_queue.collect())
    @rule(place=PLACES)
    def a_status_message_is_repeated(self, place: int) -> None:
        held = self.world.status_queue.held
        self.world.status_queue.repeat(held[place % len(held)])

    @precondition(lambda self: self.world.receipts_queue.collect())
    @rule(place=PLACES)
    def a_comparison_is_repeated(self, place: int) -> None:
        held = self.world.receipts_queue.held
        self.world.receipts_queue.repeat(held[place % len(held)])

    @rule(name=NAMES)
    def a_look_is_requested(self, name: str) -> None:
        self.world.request_check(name)

    @rule()
    def everything_comes_to_rest(self) -> None:
        if self.dropped:
            self.world.request_check(*self.world.keys)
            self.dropped = False
        self.world.run()
        self.world.check()

    def teardown(self) -> None:
        self.everything_comes_to_rest()

    def run(self, queue: PolledQueue, process: Process, chosen: frozenset[int], step: int, disturbance: Any) -> None:
        due = [message for place, message in enumerate(queue.due()) if place in chosen or not chosen][:10]
        if not due:
            return
        try:
            queue.deliver(self.disturbed(process, step, disturbance), due)
        except Killed:
            assert disturbance == "kill"

    def disturbed(self, process: Process, at: int, disturbance: Any) -> Process:
        """Have something happen at a step of the function, before its calls or after them."""
        steps = 0

        def intercept(moment: str, operation: str, _data: dict[str, Any]) -> None:
            nonlocal steps
            steps += 1
            if disturbance is not None and steps == at:
                with self.world.aws.intercepted(lambda *_: None):
                    self.disturb(disturbance, moment, operation)

        def run(messages: list[QueueMessage]) -> list[str]:
            with self.world.aws.intercepted(intercept):
                return process(messages)

        return run

    def disturb(self, disturbance: Any, moment: str, operation: str) -> None:
        world = self.world
        match disturbance:
            case "kill":
                raise Killed
            case "throttle" if moment == "before":
                response: Any = {
                    "Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"},
                    "ResponseMetadata": {"HTTPStatusCode": 429},
                }
                raise ClientError(response, operation)
            case "lose the answer" if moment == "after":
                raise lost()
            case "ingest":
                world.ingest()
            case "convert":
                world.convert()
            case "follow":
                world.follow()
            case "settle":
                world.settle()
            case (method, *arguments):
                getattr(world, method)(*arguments)


@pytest.mark.parametrize("vector_store", [OTHER_STORE, MANAGED])
def test_everything_agrees_at_rest_after_any_sequence(make_world: Callable[..., World], vector_store: str) -> None:
    class Machine(AnySequence):
        def __init__(self) -> None:
            super().__init__(make_world(vector_store=vector_store))

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=60 if SOAK else 25,
            deadline=None,
            derandomize=not SOAK,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
