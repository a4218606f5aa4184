"""Items that cannot be read are replaced, removed or left alone, and what they held is never lost without a trace."""

import itertools
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ragstack_common.reconciliation import sources
from ragstack_common.reconciliation.reconciliation import LAST_SECONDS, RESERVE_SECONDS
from ragstack_common.reconciliation.sources import IndexedDocument
from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.items import FORMAT, Item
from ragstack_common.registry.job_records import Job
from ragstack_common.registry.records import SEARCHABLE, Status
from ragstack_common.registry.table import INDEXES, URI, document_id
from tests.ragstack_common.reconciliation.clients import Death, KilledError
from tests.ragstack_common.reconciliation.stack import HOUR, Stack
from tests.ragstack_common.registry.damage import damaged, damages, tableable
from tests.support.soak import SOAK

KEYS = tuple(f"{number}.txt" for number in range(8))
BROKEN: dict[str, Any] = {"status": {"S": "NO SUCH STATUS"}}
NAMELESS: dict[str, Any] = {"full_uri": None, "revision": None}


def item_of(stack: Stack, key: str) -> Item | None:
    return stack.registry.items([document_id(stack.uri(key))]).get(document_id(stack.uri(key)))


def edit(stack: Stack, key: str, changes: dict[str, Any]) -> Item:
    """Change an item by hand, as far as the table lets."""
    item = item_of(stack, key)
    assert item is not None
    after = tableable(damaged(item, changes), (URI, *INDEXES.values()))
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item=after)
    return after


def counts(stack: Stack) -> dict[tuple[str, Any], int]:
    catalogue = Catalogue(stack.aws.dynamodb, stack.bucket)
    return {("", None): catalogue.documents()} | {(f.key, f.value): f.documents for f in catalogue.facets()}


def repaired(job: Job) -> dict[str, int]:
    return {what: found["count"] for what, found in job.report["records"].items()}


def check(stack: Stack, present: dict[str, str]) -> None:
    """Bucket, registry, knowledge base and catalogue agree."""
    counted: Counter[tuple[str, Any]] = Counter()
    for key in KEYS:
        record = stack.record(key)
        if key in present:
            assert record.status in SEARCHABLE, record
            assert record.observed.etag == present[key]
            assert record.counted == counted_under(record.observed.attributes)
            counted.update((name, json.loads(value)) for name, value in record.counted)
        else:
            assert record.status is Status.DELETED or record.revision == 0, record
        assert stack.in_knowledge_base(key) == ("INDEXED" if key in present else "NOT_FOUND")
    assert counts(stack) == {("", None): 0} | counted


ACTIONS = st.sampled_from(["nothing", "nothing", "overwrite", "remove", "remove and forget"])


@settings(
    max_examples=40 if SOAK else 3,
    derandomize=not SOAK,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(st.tuples(damages(), ACTIONS), min_size=len(KEYS), max_size=len(KEYS)))
def test_whatever_was_done_to_items_a_reconciliation_heals_it(
    new_stack: Callable[[], Stack], done: list[tuple[dict[str, Any], str]]
) -> None:
    stack = new_stack()
    for key in KEYS:
        stack.put(key, f"The text of {key}.", {"corpus": f"c{key}", "tags": ["one", "two"]})
    stack.look(*KEYS)
    stack.rest()
    stack.clock.ahead += HOUR
    for key, (changes, action) in zip(KEYS, done, strict=True):
        edit(stack, key, changes)
        if action == "overwrite":
            stack.put(key, "Another text.")
        elif action != "nothing":
            stack.remove(key)
            stack.remove(f"{key}.metadata.json")
        if action == "remove and forget":
            stack.delete_behind_the_back(key)
    stack.clock.ahead += HOUR

    found = stack.reconcile()
    stack.rest()
    stack.clock.ahead += HOUR
    left = stack.reconcile()

    assert found.status == left.status == "COMPLETE"
    assert left.report["differences_in_all"] == 0, (found.report, left.report)
    assert left.report["records"] == {}
    check(stack, {key: stack.etag(key) for key, (_, action) in zip(KEYS, done, strict=True) if "remove" not in action})


def test_a_record_is_made_anew_and_what_it_held_is_logged_and_told(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    stack.indexed("0.txt", "1.txt", corpus="x")
    held = edit(stack, "0.txt", BROKEN | {"noted": {"S": "by hand " * 200}})
    stack.remove("1.txt")

    with caplog.at_level(logging.WARNING, "ragstack"):
        job = stack.reconcile()
    waiting = stack.record("0.txt")
    looks = stack.looks()

    uri = stack.uri("0.txt")
    assert job.status == "COMPLETE"
    assert job.report["differences"] == {
        "not_in_bucket": {"count": 1, "samples": [stack.uri("1.txt")]},
        "unreadable": {"count": 1, "samples": [uri]},
    }
    assert (job.report["differences_in_all"], job.report["looked_at"], looks) == (2, 2, ["0.txt", "1.txt"])
    (told,) = job.report["records"]["made_anew"]["samples"]
    assert told.startswith(f"{uri}: it held {{")
    assert told.endswith(" ...")
    assert len(told) < 1200
    (line,) = [text for text in caplog.messages if "It held" in text]
    assert json.loads(line.partition("(part 1 of 1): ")[2]) == held
    assert "'NO SUCH STATUS' is not a valid Status" in line
    assert (waiting.status, waiting.reason) == (Status.WAITING, "Its record could not be read: made anew")
    assert counts(stack)["corpus", "x"] == 2, "searches find it still"


def test_a_long_item_is_logged_in_parts_and_nothing_of_it_is_left_out(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    stack.indexed("0.txt")
    held = edit(stack, "0.txt", BROKEN | {"noted": {"S": "x" * 250_000}, "raw": {"B": b"\x00"}})

    with caplog.at_level(logging.WARNING, "ragstack"):
        stack.reconcile()

    parts = [text.split(" of 3): ")[1] for text in caplog.messages if "It held (part" in text]
    assert len(parts) == 3
    assert json.loads("".join(parts)) == held | {"raw": {"B": repr(b"\x00")}}


def test_an_item_that_no_document_has_is_removed_and_its_counts_with_it(stack: Stack) -> None:
    stack.indexed("0.txt", "1.txt", corpus="x")
    whole = item_of(stack, "0.txt")
    assert whole is not None
    edit(stack, "1.txt", NAMELESS)
    stack.remove("1.txt")
    stack.remove("1.txt.metadata.json")
    stack.delete_behind_the_back("1.txt")
    for name in ("copied by hand", "0" * 32):
        stack.aws.dynamodb.put_item(TableName=stack.bucket, Item={**whole, "pk": {"S": f"DOCUMENT#{name}"}})

    job = stack.reconcile()
    afterwards = stack.reconcile()

    assert repaired(job) == {"removed": 3}
    assert any("copied by hand: it held" in told for told in job.report["records"]["removed"]["samples"])
    assert item_of(stack, "1.txt") is None
    assert stack.registry.items(["copied by hand", "0" * 32]) == {}
    assert afterwards.report["differences_in_all"] == 0
    assert counts(stack) == {("", None): 1, ("corpus", "x"): 1}


@pytest.mark.parametrize("where", ["bucket", "knowledge base"])
def test_a_document_whose_item_does_not_name_it_is_found_elsewhere(stack: Stack, where: str) -> None:
    stack.indexed("0.txt")
    edit(stack, "0.txt", NAMELESS)
    if where == "bucket":
        stack.delete_behind_the_back("0.txt")
    else:
        stack.remove("0.txt")

    assert repaired(stack.reconcile()) == {"made_anew": 1}

    stack.rest()
    assert stack.record("0.txt").status == ("INDEXED" if where == "bucket" else "DELETED")
    assert stack.in_knowledge_base("0.txt") == ("INDEXED" if where == "bucket" else "NOT_FOUND")


def test_what_a_newer_version_wrote_is_told_and_left_alone(stack: Stack) -> None:
    stack.indexed("0.txt", "1.txt")
    held = edit(stack, "0.txt", {FORMAT: {"N": "2"}, "full_uri": {"M": {"new": {"S": "form"}}}})

    job = stack.reconcile()

    assert item_of(stack, "0.txt") == held
    assert job.report["differences"] == {"unreadable": {"count": 1, "samples": [stack.uri("0.txt")]}}
    assert job.report["records"] == {
        "left_alone": {"count": 1, "samples": [f"{stack.uri('0.txt')}: a newer version wrote it"]}
    }
    assert stack.looks() == []


def test_while_the_knowledge_base_works_on_a_document_its_item_is_left_alone(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.indexed("0.txt")
    held = edit(stack, "0.txt", BROKEN)
    busy = [IndexedDocument(stack.uri("0.txt"), "IN_PROGRESS", stack.clock())]
    with monkeypatch.context() as patched:
        patched.setattr("ragstack_common.reconciliation.reconciliation.knowledge_base_pages", lambda *_, **__: [busy])
        job = stack.reconcile()

    assert repaired(job) == {"left_alone": 1}
    assert item_of(stack, "0.txt") == held
    assert repaired(stack.reconcile()) == {"made_anew": 1}


def test_documents_of_another_bucket_are_left_alone(stack: Stack) -> None:
    stack.indexed("0.txt")
    held = edit(stack, "0.txt", NAMELESS)
    other = f"{stack.bucket}-other"
    stack.aws.s3.create_bucket(Bucket=other)

    job = stack.reconcile(documents_bucket=other)

    assert job.report["records"]["left_alone"]["samples"] == [
        f"{stack.uri('0.txt')}: the document lies in another bucket"
    ]
    assert item_of(stack, "0.txt") == held


def test_who_writes_the_item_meanwhile_is_not_written_over(stack: Stack) -> None:
    stack.indexed("0.txt", "1.txt")
    edit(stack, "0.txt", BROKEN)
    edit(stack, "1.txt", BROKEN)

    class Meanwhile:
        def __init__(self, client: Any) -> None:
            self.client = client

        def __getattr__(self, name: str) -> Any:
            return getattr(self.client, name)

        def transact_write_items(self, **parameters: Any) -> Any:
            if any("Put" in action and "full_uri" in action["Put"]["Item"] for action in parameters["TransactItems"]):
                edit(stack, "0.txt", {"status": {"S": "INDEXED"}, "reason": {"S": "put right by hand"}})
            return self.client.transact_write_items(**parameters)

    stack.send_job({"job": stack.jobs.create("reconcile", "test").id})
    stack.run_jobs(mortal=lambda client: Meanwhile(client) if client is stack.aws.dynamodb else client)

    (job,) = stack.jobs.page(1)[0]
    assert repaired(job) == {"made_anew": 1, "left_alone": 1}
    assert (stack.record("0.txt").status, stack.record("0.txt").reason) == ("INDEXED", "put right by hand")
    assert stack.record("1.txt").status is Status.WAITING


def test_a_function_that_is_killed_before_the_record_is_written_has_sent_the_look(stack: Stack) -> None:
    stack.indexed("0.txt")
    broken = edit(stack, "0.txt", BROKEN)
    job = stack.jobs.create("reconcile", "test")
    counting = Death(0)
    service = stack.service(counting)
    service.reconciliation.run(lambda: 900.0)  # how many calls there are until the record is made anew
    stack.take("ingestion")
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item=broken)

    with pytest.raises(KilledError):
        stack.service(Death(counting.calls)).reconciliation.run(lambda: 900.0)

    assert item_of(stack, "0.txt") == broken
    assert stack.looks() == ["0.txt"]
    stack.send_job({"job": job.id})
    stack.run_jobs()
    assert repaired(stack.jobs.get(job.id)) == {"made_anew": 1}


def test_when_time_runs_out_what_is_known_is_repaired_and_what_is_not_is_left(stack: Stack) -> None:
    stack.indexed("0.txt", "1.txt")
    edit(stack, "0.txt", BROKEN)
    edit(stack, "1.txt", NAMELESS)

    def after_the_registry() -> Iterator[float]:
        yield from (900.0, 900.0)
        while True:
            yield RESERVE_SECONDS - 1

    times = after_the_registry()
    outcome = stack.service().reconciliation.run(lambda: next(times))

    assert not outcome.is_complete
    assert {what: found["count"] for what, found in outcome.report["records"].items()} == {
        "made_anew": 1,
        "left_alone": 1,
    }
    assert "the time ended" in outcome.report["records"]["left_alone"]["samples"][0]


def test_without_any_time_nothing_is_repaired_and_the_job_says_so(stack: Stack) -> None:
    stack.indexed("0.txt")
    held = edit(stack, "0.txt", BROKEN)
    service = stack.service()
    run = replace(service.reconciliation, clock=stack.clock)
    looks_at_the_clock = itertools.count()
    run.run(lambda: 900.0 + next(looks_at_the_clock))
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item=held)
    times = itertools.chain([900.0] * (next(looks_at_the_clock) - 1), itertools.repeat(LAST_SECONDS))

    outcome = run.run(lambda: next(times))

    assert outcome.reason == "The time ended while records that cannot be read were replaced"
    assert not outcome.is_complete
    assert item_of(stack, "0.txt") == held


def test_a_count_that_is_no_number_is_put_right(stack: Stack) -> None:
    stack.indexed("0.txt", corpus="x")
    key = {"pk": {"S": "CATALOGUE"}, "sk": {"S": 'corpus\x1f"x"'}}
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item={**key, "documents": {"S": "seven"}})
    assert counts(stack) == {("", None): 1}

    job = stack.reconcile()

    assert job.report["catalogue"]["samples"] == [{"value": 'corpus\x1f"x"', "was": "{'S': 'seven'}", "is": 1}]
    assert counts(stack) == {("", None): 1, ("corpus", "x"): 1}


def test_no_page_of_the_registry_leaves_out_what_stands_under_a_documents_key(stack: Stack) -> None:
    stack.indexed("0.txt", "1.txt")
    edit(stack, "0.txt", {"kind": None, "status": None, "full_uri": {"N": "1"}, "extra": {"S": "x"}})

    pages = [*sources.registry_pages(stack.aws.dynamodb, stack.bucket)]

    assert len([item for page in pages for item in page]) == 2
    assert all("extra" not in item for page in pages for item in page)
