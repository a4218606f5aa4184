"""Counts per attribute value: always equal to a recount."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import boto3
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from ragstack_common.registry.catalogue import (
    ALL_DOCUMENTS,
    COUNTED_STATUSES,
    MAX_COUNTED_PER_DOCUMENT,
    MAX_VALUE_CHARACTERS,
    Catalogue,
    ValueCount,
    counted_under,
)
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.hours import HOUR_SECONDS, read_hours
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Observation, Status
from ragstack_common.registry.table import MAX_KEY_BYTES
from tests.ragstack_common.registry.strategies import ATTRIBUTES
from tests.support.registry_table import TABLE, create_table
from tests.support.soak import SOAK, examples

NAMES = [f"s3://bucket/{number}" for number in range(5)]
VALUES = st.sampled_from(["stones", "woods", 1, 1.0, True, 0.5, "", "日本", ["a", "b"], ["a", "a"], []])
SMALL = st.dictionaries(st.sampled_from(["corpus", "version", "topic", "tag", "a\x1fb"]), VALUES, max_size=4)


def written(registry: DocumentRegistry, uri: str, **attributes: Any) -> None:
    before = registry.read([uri])[uri]
    after = replace(
        before,
        status=Status.INDEXED,
        observed=Observation('"e"', attributes=attributes),
        counted=counted_under(attributes),
    )
    assert registry.write([RecordChange(before, after)]) == set()


def test_values_of_all_types_are_listed_in_order(dynamodb: Any) -> None:
    registry = DocumentRegistry(TABLE, dynamodb)
    written(registry, NAMES[0], year=2026, topic="b", tags=["x", "y"], internal=True)
    written(registry, NAMES[1], year=2025, topic="a", tags=["y"], internal=False)
    written(registry, NAMES[2], year="old", topic="a")

    facets = Catalogue(dynamodb, TABLE).facets()

    assert [(f.key, f.value, f.documents) for f in facets] == [
        ("internal", False, 1),
        ("internal", True, 1),
        ("tags", "x", 1),
        ("tags", "y", 2),
        ("topic", "a", 2),
        ("topic", "b", 1),
        ("year", 2025, 1),
        ("year", 2026, 1),
        ("year", "old", 1),
    ]
    assert Catalogue(dynamodb, TABLE).documents() == 3


def test_an_attribute_is_listed_without_others_with_the_same_prefix(dynamodb: Any) -> None:
    registry = DocumentRegistry(TABLE, dynamodb)
    written(registry, NAMES[0], topic="a", topics="b", **{"topic\x1fx": "c"})

    assert Catalogue(dynamodb, TABLE).facets("topic") == [ValueCount("topic", "a", 1)]
    assert Catalogue(dynamodb, TABLE).facets("nothing") == []


@given(ATTRIBUTES)
@settings(max_examples=examples(200))
def test_the_counted_values_of_a_document_are_bounded(attributes: dict[str, Any]) -> None:
    counted = counted_under(attributes)

    assert counted[0] == ALL_DOCUMENTS
    assert len(counted) == len(set(counted)) <= MAX_COUNTED_PER_DOCUMENT
    for key, text in counted[1:]:
        value = attributes[key]
        assert json.loads(text) in (value if isinstance(value, list) else [value])
        assert len(text) <= MAX_VALUE_CHARACTERS
        assert len(f"{key}\x1f{text}".encode()) <= MAX_KEY_BYTES


def test_corpus_and_version_are_always_counted() -> None:
    attributes = {"corpus": "stones", "version": "2"} | {f"a{number:02d}": number for number in range(60)}

    counted = counted_under(dict(reversed(attributes.items())))

    assert counted[1:3] == (("corpus", '"stones"'), ("version", '"2"'))
    assert len(counted) == MAX_COUNTED_PER_DOCUMENT


class Counting(RuleBasedStateMachine):
    """Documents come, change and go, in batches of which a part is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.aws = mock_aws()
        self.aws.start()
        moto_api_backend.reset()
        self.client = boto3.client("dynamodb", region_name="eu-west-1")
        create_table(self.client)
        self.registry = DocumentRegistry(TABLE, self.client)
        self.stale: dict[str, DocumentRecord] = {}
        self.happened = {outcome: Counter[int]() for outcome in ("indexed", "failed")}
        self.clock = 0.0

    def teardown(self) -> None:
        self.aws.stop()

    @rule(
        attributes=st.dictionaries(st.sampled_from(NAMES), SMALL, min_size=1),
        gone=st.sets(st.sampled_from(NAMES)),
        status=st.sampled_from([*Status]),
        minutes=st.integers(1, 100),
        stale=st.booleans(),
    )
    def they_are_written(
        self, attributes: dict[str, dict[str, Any]], gone: set[str], status: Status, minutes: int, stale: bool
    ) -> None:
        self.clock += 60 * minutes
        now = self.registry.read(attributes)
        read = {uri: self.stale.get(uri, now[uri]) if stale else now[uri] for uri in attributes}
        changes = []
        for uri, before in read.items():
            found = Observation() if uri in gone else Observation('"e"', attributes=attributes[uri])
            reached = Status.DELETED if uri in gone else status
            after = replace(
                before, status=reached, observed=found, finished_at=self.clock if reached in FINAL else None
            )
            counted = counted_under(attributes[uri]) if reached in SEARCHABLE else ()
            changes.append(RecordChange(before, replace(after, counted=counted)))

        lost = self.registry.write(changes)

        assert lost == {uri for uri, before in read.items() if before.revision != now[uri].revision}
        for change in changes:
            if change.after.uri not in lost and change.after.status in (*SEARCHABLE, Status.FAILED):
                outcome = "failed" if change.after.status is Status.FAILED else "indexed"
                self.happened[outcome][int(self.clock) // HOUR_SECONDS * HOUR_SECONDS] += 1

    @rule()
    def records_are_read_and_become_stale(self) -> None:
        self.stale = self.registry.read(NAMES)

    @invariant()
    def counts_are_what_a_recount_gives(self) -> None:
        recount = Counter[Any]()
        for record in self.registry.read(NAMES).values():
            recount.update(record.counted)
        documents = recount.pop(ALL_DOCUMENTS, 0)
        catalogue = Catalogue(self.client, TABLE)
        assert {(f.key, json.dumps(f.value, ensure_ascii=False)): f.documents for f in catalogue.facets()} == recount
        assert catalogue.documents() == documents

    @invariant()
    def statuses_and_hours_are_counted(self) -> None:
        statuses = Counter(record.status for record in self.registry.read(NAMES).values() if record.revision)
        hours = read_hours(self.client, TABLE, 0)

        assert Catalogue(self.client, TABLE).statuses() == {
            status: count for status, count in statuses.items() if status in COUNTED_STATUSES
        }
        assert {start: each.indexed for start, each in hours.items() if each.indexed} == self.happened["indexed"]
        assert {start: each.failed for start, each in hours.items() if each.failed} == self.happened["failed"]


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60 if SOAK else 5, stateful_step_count=10, deadline=None)
