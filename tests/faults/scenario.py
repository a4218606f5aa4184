"""Runs a workload on a stack with faults and kills, waits for rest, and collects the differences."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.reconciliation.compare import CLOCK_SECONDS
from ragstack_common.registry.jobs import RECONCILE
from ragstack_common.registry.records import Status
from tests.faults.agreement import describe, disagreements, search_disagreements
from tests.faults.document_client import DocumentClient
from tests.faults.event_agreement import Event, Listener, event_disagreements, repetitions
from tests.faults.faulty_stack import FaultyStack, Places
from tests.faults.jobs import JobStarter
from tests.faults.killer import Killer
from tests.faults.proxy import NO_FAULTS, FaultProxy, Rates
from tests.faults.snapshot import Snapshot, depths, documents, jobs, take
from tests.faults.workload import LATE, Share, Workload

CHECKS_AT_REST: Final = 3
"""Consecutive checks, half a second apart, that must find nothing left to do."""

MAX_DESCRIBED: Final = 20

MORE_AT_ONCE: Final = 5
"""Operations in each round of more work."""


@dataclass(frozen=True)
class Size:
    """How much is done at most, and which functions meet faults and are killed.

    Attributes:
        seconds: Minimum time over which the work is spread.
        full: Whether one job is a full synchronisation, and a reconciliation must find nothing in the end.
        timeout_seconds: Timeout of a function.
        rest_seconds: Maximum time to come to rest after the last operation.
        old_words: Words of former contents that are searched for; None searches for all.
        least: Minimum counts by the names of `happened`; the work continues until they are reached.
    """

    uploads: int
    overwrites: int
    deletions: int
    seconds: float
    seconds_between_kills: float
    kills: int
    functions: tuple[str, ...]
    seconds_between_jobs: float
    jobs: int
    full: bool
    timeout_seconds: int
    rest_seconds: float
    old_words: int | None = None
    least: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """All disagreements, the final state, the events with repetitions, and the killer with its counts."""

    wrong: list[str]
    now: Snapshot
    events: Sequence[Event]
    killer: Killer


class NotAtRestError(AssertionError):
    """Work is still in progress, or a minimum count was not reached."""


def run(stack: FaultyStack, size: Size, seed: int, say: Callable[[str], None] = print) -> Result:
    """Run the scenario on a stack without documents.

    Raises:
        NotAtRestError: The stack does not come to rest, or does not reach the minimum counts.
    """
    try:
        result = _run(stack, size, seed, say)
    except NotAtRestError:
        _keep_logs(stack, say)
        raise
    if result.wrong:
        _keep_logs(stack, say)
    return result


def _keep_logs(stack: FaultyStack, say: Callable[[str], None]) -> None:
    file = stack.folder / "function-logs.txt"
    file.write_text("\n".join(stack.function_logs()))
    say(f"logs of the functions: {file}")


def _run(stack: FaultyStack, size: Size, seed: int, say: Callable[[str], None]) -> Result:
    places = stack.places
    began = time.monotonic()
    listener = Listener(places)
    client = DocumentClient(stack.connection.api_url, places.bucket)
    workload = Workload(
        places.client("s3"),
        client,
        places.bucket,
        seed,
        uploads=size.uploads,
        overwrites=size.overwrites,
        deletions=size.deletions,
        # An ingestion job indexes a document with a URI that no other call takes, and nothing removes it again.
        share=Share(too_long=not size.full),
    )
    aws = stack.connection.aws_endpoint
    assert aws is not None, "a local stack says where it is"
    with FaultProxy(aws, Rates(), seed) as proxy:
        stack.divert(proxy, size.timeout_seconds, size.functions)
        killer = Killer(stack, size.seconds_between_kills, size.kills, seed, size.functions)
        starter = JobStarter(client, places, size.seconds_between_jobs, size.jobs, seed, full=size.full)
        with stack.faults_in_bedrock(seed), killer:
            with starter:
                workload.run_first(size.seconds * LATE)
                say(f"{workload.done} operations; waiting until the first documents are in a final state")
                await_final(places, size.uploads // 2, size.rest_seconds)
                workload.run_last(size.seconds * (1 - LATE))
            worked = time.monotonic() - began
            say(f"{workload.done} operations in {worked:.0f} s; waiting for rest")
            come_to_rest(places, size.rest_seconds, say)
            end = time.monotonic() + size.rest_seconds
            while not (count := happened(stack, client, proxy, killer)) >= Counter(size.least):
                if time.monotonic() > end:
                    raise NotAtRestError(f"After {size.rest_seconds:g} s the counts are {count}, not {size.least}")
                say(f"  continuing, because the counts are {count}, not {size.least}")
                workload.go_on(MORE_AT_ONCE)
                come_to_rest(places, size.rest_seconds, say)
            bedrock_faults = stack.happened_in_bedrock()
        rested = time.monotonic() - began
        proxy.rates = NO_FAULTS
        now, events = take(places), listener.drain()
        old = sorted(word for word in workload.words_of_old if word)[: size.old_words]
        wrong = [
            *disagreements(now),
            *event_disagreements(now, events, workload.contents),
            *expectations_missed(now, workload),
            *search_disagreements(places, now, workload.words_of_now, old),
            *(found_in_the_end(places, client, size.rest_seconds) if size.full else ()),
        ]
        summary = "\n".join(
            [
                f"{workload.done} operations on {len(workload.lives)} keys in {worked:.0f} s",
                f"at rest after {rested:.0f} s",
                f"documents: {_counted(Counter(str(record.status) for record in now.registry.values()))}",
                f"attempts: {_counted(Counter(record.attempts for record in now.registry.values()))}",
                f"events: {_counted(Counter(each.type for each in events))}; {repetitions(events)} of them repetitions",
                f"over HTTP: {_counted(client.counts)}",
                f"jobs requested: {_counted(starter.requested)}",
                f"jobs: {_counted(Counter(f'{job.kind} {job.status}' for job in now.jobs))}",
                *(f"  {job.kind} {job.status}: {job.reason}" for job in now.jobs if job.reason),
                f"checks that jobs requested: {sum(job.report.get('looked_at', 0) for job in now.jobs)}",
                f"kills: {_counted(Counter(f'{name} {doing}' for name, doing in killer.kills.elements()))}",
                f"faults of AWS: {_counted(proxy.by_kind())}",
                f"faults of Bedrock: {_counted(Counter(bedrock_faults))}",
                "calls of Bedrock:",
                *(f"  {name:32}{count}" for name, count in stack.calls_of_bedrock().items()),
                f"dead letters: {len(now.dead_letters)}",
            ]
        )
        say(summary)
        return Result(wrong, now, events, killer)


def happened(stack: FaultyStack, client: DocumentClient, proxy: FaultProxy, killer: Killer) -> Counter[str]:
    """Count what may depend on the speed of the machine."""
    return Counter(
        {
            **Counter(str(record.status) for record in documents(stack.places)),
            "kills at work": killer.of_busy,
            "faults of AWS": proxy.by_kind().total(),
            "faults of Bedrock": sum(stack.happened_in_bedrock().values()),
            "uploads over HTTP": client.counts["uploads"],
            "deletions over HTTP": client.counts["deletions"],
        }
    )


def expectations_missed(now: Snapshot, workload: Workload) -> list[str]:
    """List documents whose state does not follow from their content."""
    missed = []
    for uri in workload.words_of_now:
        record = now.registry.get(uri)
        if record is None or record.status is not Status.INDEXED:
            missed.append(f"{uri} can be indexed, and its record is {record}")
    for uri, why in workload.bad.items():
        record = now.registry.get(uri)
        if record is None or record.status is not Status.FAILED:
            missed.append(f"{uri} has {why}, and its record is {record}")
    wanted = {*workload.words_of_now, *workload.bad}
    if wanted != {*now.bucket}:
        missed.append(f"the bucket differs from what was put there: {wanted ^ {*now.bucket}}")
    return missed


def found_in_the_end(places: Places, client: DocumentClient, seconds: float) -> list[str]:
    """Run a reconciliation at rest, which must find no difference."""
    time.sleep(CLOCK_SECONDS + 1)
    assert client.start(RECONCILE), "no job is running, and none can be started"
    end = time.monotonic() + seconds
    while (job := jobs(places)[0]).is_running and time.monotonic() < end:
        time.sleep(0.5)
    right = job.status == "COMPLETE" and job.report["differences_in_all"] == 0
    return [] if right else [f"a reconciliation at rest is not COMPLETE without a difference: {job}"]


def await_final(places: Places, wanted: int, seconds: float) -> None:
    """Wait until this many documents are in a final state."""
    end = time.monotonic() + seconds
    while (found := sum(record.is_final for record in documents(places))) < wanted:
        if time.monotonic() > end:
            raise NotAtRestError(f"After {seconds:g} s {found} documents are in a final state, of {wanted}")
        time.sleep(0.5)


def come_to_rest(places: Places, seconds: float, say: Callable[[str], None] = print) -> None:
    """Wait until the queues are empty, all documents final and no job is running.

    Raises:
        NotAtRestError: It takes longer than *seconds*.
    """
    end = time.monotonic() + seconds
    quiet, reported = 0, time.monotonic()
    while quiet < CHECKS_AT_REST:
        waiting = depths(places)
        moving = [record for record in documents(places) if not record.is_final]
        running = [job for job in jobs(places) if job.is_running]
        quiet = 0 if any(waiting.values()) or moving or running else quiet + 1
        if time.monotonic() > end:
            raise NotAtRestError(
                "\n".join(
                    [
                        f"After {seconds:g} s: {waiting} messages, {len(running)} jobs, {len(moving)} documents:",
                        *map(str, running),
                        *(describe(record, "is on its way") for record in moving[:MAX_DESCRIBED]),
                        f"dead letters: {take(places).dead_letters}",
                    ]
                )
            )
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            kinds = _counted(Counter(str(record.status) for record in moving))
            say(f"  messages: {_counted(Counter(waiting))}; jobs: {len(running)}; documents: {kinds or 'none'}")
        time.sleep(0.5)


def _counted(counter: Counter[Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))
