"""What the scope of a caller adds to a warm search: ``python benchmarks/access.py``.

The engine answers at once, and so does the table, from memory: the difference of two searches is the time of this
processor. The calls to the table are counted; DynamoDB's round trip comes in addition.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ragstack_common.access.callers import EVERYONE, OPERATOR, Caller
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import MAX_LABELS_IN_A_FILTER, AccessRules
from ragstack_common.filters import Filter, to_bedrock
from ragstack_common.registry.table import (
    ACCESS,
    LABEL,
    PARTITION_KEY,
    SORT_KEY,
    STATUS,
    document_id,
    document_key,
    to_item,
)
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.engine import Engine
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.names import BEDROCK_ENGINE
from ragstack_common.settings.search import QuerySettings

LABELS: Final = 10_000
GROUPS: Final = 100
SEEN: Final = MAX_LABELS_IN_A_FILTER
"""Labels of the caller, the most that a search takes."""

RUNS: Final = 400
RESULTS: Final = 10


class Immediate(Engine):
    """Finds the same chunks for every query, and writes the filter as an engine would."""

    name = "bedrock"

    def __init__(self, chunks: list[RetrievedChunk]) -> None:
        super().__init__()
        self._chunks = chunks

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:  # noqa: ARG002
        if filters is not None:
            to_bedrock(filters)
        return self._chunks[:count]


class Memory:
    """A table that answers at once, and counts its calls."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.calls = 0
        self._items = {document_id(uri): label for uri, label in labels.items()}

    def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803 - the service's name
        self.calls += 1
        ((table, asked),) = RequestItems.items()
        found = [to_item({PARTITION_KEY: ACCESS, SORT_KEY: "VERSION", "number": 7})]
        for key in asked["Keys"][1:]:
            identifier = key[PARTITION_KEY]["S"].partition("#")[2]
            stored = to_item({LABEL: self._items[identifier], STATUS: "INDEXED"})
            found.append({**document_key(identifier), **stored})
        return {"Responses": {table: found}, "UnprocessedKeys": {}}


def policy() -> AccessPolicy:
    """Return a file with 10,000 labels of one to three groups, of which the caller's 100 groups see 200."""
    allowed = {
        f"label-{number}": {
            "allow": [
                f"group:g{number % GROUPS}" if number < SEEN else f"group:other-{number}",
                *(f"group:other-{number + more}" for more in range(number % 3)),
            ]
        }
        for number in range(LABELS)
    }
    return AccessPolicy(rights={"read": [EVERYONE]}, labels=allowed)


def measured(*works: Callable[[], object]) -> list[tuple[float, float]]:
    """Return the median duration, and the processor time of all threads on average, in milliseconds."""
    for work in works:
        work()
    times: list[list[float]] = [[] for _ in works]
    processor = [0.0 for _ in works]
    for _ in range(RUNS):
        for number, work in enumerate(works):
            start, before = time.perf_counter(), time.process_time()
            work()
            processor[number] += time.process_time() - before
            times[number].append(time.perf_counter() - start)
    return [
        (statistics.median(taken) * 1000, spent / RUNS * 1000) for taken, spent in zip(times, processor, strict=True)
    ]


def main() -> None:
    """Measure, and print a table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rules = AccessRules(policy(), version=7)
    caller = Caller("user:u", frozenset({EVERYONE, "user:u", *(f"group:g{number}" for number in range(GROUPS))}))
    uris = {f"s3://documents/{number}.md": f"label-{number}" for number in range(RESULTS)}
    chunks = [
        RetrievedChunk(content="Text.", score=0.5, source=uri, chunk_id=uri, metadata={"access": label})
        for uri, label in uris.items()
    ]
    table: Any = Memory(uris)
    guard = Guard(rules.policy, AccessTable(table, "registry"))
    guard.loaded_rules = rules
    settings = QuerySettings(
        knowledge_base_id="KBKBKBKBK1", registry_table="registry", retrieval_engine=BEDROCK_ENGINE, infer_filter=False
    )
    service = QueryService(settings, MultiSliceBackend(Immediate(chunks)), guard=guard)
    request = RetrieveRequest(query="How many days of leave?", top_k=RESULTS)

    loop = asyncio.new_event_loop()

    def search(by: Caller) -> None:
        assert len(loop.run_until_complete(service.retrieve_async(request, by)).results) == RESULTS

    search(caller)
    table.calls = 0
    search(caller)
    calls = table.calls
    principals = iter([frozenset({*caller.principals, f"user:{number}"}) for number in range(RUNS + 1)])
    without, with_scope, first, filtering, checking = measured(
        lambda: search(OPERATOR),
        lambda: search(caller),
        lambda: rules.labels(Caller("user:u", next(principals))),
        lambda: rules.scope(caller),
        lambda: guard.check(caller, uris),
    )
    loop.close()
    print(
        f"{LABELS:,} labels, {GROUPS} groups, {len(rules.labels(caller) or ())} labels of the caller, {RESULTS} results"
    )
    added = with_scope[0] - without[0], with_scope[1] - without[1]
    print("| | duration, median, ms | processor time, mean, ms |\n|---|---:|---:|")
    for name, (duration, processor) in {
        "a search without a scope": without,
        "a search with a scope": with_scope,
        "**added by the scope**": added,
        "of it: the labels of a caller who is not remembered": first,
        "of it: the filter of a caller who is": filtering,
        "of it: the check of the results, without the round trip": checking,
    }.items():
        print(f"| {name} | {duration:.2f} | {processor:.2f} |")
    print(f"Calls to the table: {calls} BatchGetItem, of {RESULTS + 1} items")


if __name__ == "__main__":
    main()
