"""One run: a workload on a stack with faults and kills, then rest, then what does not agree."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.registry.records import Status
from tests.faults.agreement import disagreements, search_disagreements, told_of
from tests.faults.faulty_stack import FaultyStack, Places
from tests.faults.killer import Killer
from tests.faults.proxy import NO_FAULTS, FaultProxy, Rates
from tests.faults.snapshot import Snapshot, depths, documents, take
from tests.faults.workload import LATE, Workload

LOOKS_AT_REST: Final = 3
"""So many times in a row, half a second apart, nothing must be left to do."""

TOLD_AT_MOST: Final = 20


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes:
        uploads: Keys.
        overwrites: Of any of them, or of their sidecars.
        deletions: Of any of them; some are created again.
        seconds: Over which the work is spread at least.
        seconds_between_kills: On average.
        kills: At most.
        timeout_seconds: Of a function.
        rest_seconds: Until everything must be at rest, after the last operation.
        old_words: Of former contents that are searched for; None searches for all.
    """

    uploads: int
    overwrites: int
    deletions: int
    seconds: float
    seconds_between_kills: float
    kills: int
    timeout_seconds: int
    rest_seconds: float
    old_words: int | None = None


@dataclass(frozen=True)
class Result:
    """What came of it.

    Attributes:
        wrong: Everything that does not agree; empty when all is well.
        summary: Lines for people.
        now: What there was at the end.
        workload: What was done.
        proxy: With its counts.
        killer: With its counts.
        bedrock_faults: Faults of the local Bedrock, by kind.
    """

    wrong: list[str]
    summary: str
    now: Snapshot
    workload: Workload
    proxy: FaultProxy
    killer: Killer
    bedrock_faults: dict[str, int]


class NotAtRestError(AssertionError):
    """Something is still going on; the message says what."""


def run(stack: FaultyStack, size: Size, seed: int, say: Callable[[str], None] = print) -> Result:
    """Do all of it on a stack that runs and has no documents.

    Raises:
        NotAtRestError: It does not come to rest.
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
    say(f"what the functions logged: {file}")


def _run(stack: FaultyStack, size: Size, seed: int, say: Callable[[str], None]) -> Result:
    places = stack.places
    began = time.monotonic()
    workload = Workload(
        places.client("s3"),
        places.bucket,
        seed,
        uploads=size.uploads,
        overwrites=size.overwrites,
        deletions=size.deletions,
    )
    with FaultProxy(stack.connection.aws_endpoint, Rates(), seed) as proxy:
        functions = stack.divert(proxy, size.timeout_seconds)
        assert len(functions) >= 2, f"only {functions} were diverted"
        killer = Killer(stack, size.seconds_between_kills, size.kills, seed)
        with stack.faults_in_bedrock(seed), killer:
            workload.run_first(size.seconds * LATE)
            say(f"{workload.done} operations; waiting until the first documents are in a final state")
            await_final(places, size.uploads // 2, size.rest_seconds)
            workload.run_last(size.seconds * (1 - LATE))
            worked = time.monotonic() - began
            say(f"{workload.done} operations in {worked:.0f} s; waiting for rest")
            come_to_rest(places, size.rest_seconds, say)
            bedrock_faults = stack.happened_in_bedrock()
        rested = time.monotonic() - began
        proxy.rates = NO_FAULTS
        now = take(places)
        old = sorted(word for word in workload.words_of_old if word)[: size.old_words]
        wrong = [
            *disagreements(now),
            *expectations_missed(now, workload),
            *search_disagreements(places, now, workload.words_of_now, old),
        ]
        summary = "\n".join(
            [
                f"{workload.done} operations on {len(workload.lives)} keys in {worked:.0f} s",
                f"at rest after {rested:.0f} s",
                f"documents: {_counted(Counter(str(record.status) for record in now.registry.values()))}",
                f"attempts: {_counted(Counter(record.attempts for record in now.registry.values()))}",
                f"kills: {_counted(Counter(f'{name} {doing}' for name, doing in killer.kills.elements()))}",
                f"faults of AWS: {_counted(proxy.by_kind())}",
                f"faults of Bedrock: {_counted(Counter(bedrock_faults))}",
                "requests of the functions and their faults:",
                proxy.report(),
                "calls of Bedrock:",
                *(f"  {name:32}{told}" for name, told in stack.calls_of_bedrock().items()),
                f"dead letters: {len(now.dead_letters)}",
            ]
        )
        say(summary)
        return Result(wrong, summary, now, workload, proxy, killer, bedrock_faults)


def expectations_missed(now: Snapshot, workload: Workload) -> list[str]:
    """Tell which documents are not in the state that follows from what was put into the bucket."""
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


def await_final(places: Places, wanted: int, seconds: float) -> None:
    """Wait until so many documents are in a final state, so that what comes next happens to documents at rest."""
    end = time.monotonic() + seconds
    while (found := sum(record.is_final for record in documents(places))) < wanted:
        if time.monotonic() > end:
            raise NotAtRestError(f"After {seconds:g} s {found} documents are in a final state, of {wanted}")
        time.sleep(0.5)


def come_to_rest(places: Places, seconds: float, say: Callable[[str], None] = print) -> None:
    """Wait until no message is in a queue and no document on its way.

    Raises:
        NotAtRestError: It takes longer.
    """
    end = time.monotonic() + seconds
    quiet, told = 0, time.monotonic()
    while quiet < LOOKS_AT_REST:
        waiting = depths(places)
        moving = [record for record in documents(places) if not record.is_final]
        quiet = 0 if any(waiting.values()) or moving else quiet + 1
        if time.monotonic() > end:
            raise NotAtRestError(
                "\n".join(
                    [
                        f"After {seconds:g} s: {waiting} messages, {len(moving)} documents:",
                        *(told_of(record, "is on its way") for record in moving[:TOLD_AT_MOST]),
                        f"dead letters: {take(places).dead_letters}",
                    ]
                )
            )
        if time.monotonic() - told > 10:
            told = time.monotonic()
            kinds = _counted(Counter(str(record.status) for record in moving))
            say(f"  messages: {_counted(Counter(waiting))}; documents: {kinds or 'none'}")
        time.sleep(0.5)


def _counted(counter: Counter[Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))
