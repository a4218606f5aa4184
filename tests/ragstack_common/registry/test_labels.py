"""Listings and counts of the documents of some access labels."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto.moto_api._internal.models import moto_api_backend

from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.documents import DocumentRegistry, Listing, RecordChange
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Observation, Status
from tests.support.registry_table import TABLE, create_table
from tests.support.soak import examples

LABELS = ["a", "b", "c", None]
STATUSES = [Status.INDEXED, Status.FAILED, Status.WAITING, Status.DELETED]
NAMES = [f"s3://bucket/{number:02}.md" for number in range(12)]

documents = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(
        st.sampled_from(LABELS), st.sampled_from(STATUSES), st.sampled_from(["x", "y"]), st.sampled_from([1, 2, "é"])
    ),
    max_size=12,
)
steps = st.lists(documents, min_size=1, max_size=3)
some_labels = st.sets(st.sampled_from(LABELS[:3]))


def written(client: Any, rounds: list[dict[str, Any]]) -> dict[str, DocumentRecord]:
    """Write each document as often as it is in a round."""
    registry = DocumentRegistry(TABLE, client)
    for found in rounds:
        changes = []
        for uri, (label, status, corpus, version) in found.items():
            attributes = {"corpus": corpus, "version": version}
            before = registry.read([uri])[uri]
            observed = Observation('"e"', attributes=attributes, label=label)
            counted = counted_under(attributes, has_label=label is not None) if status in SEARCHABLE else ()
            after = DocumentRecord(uri, before.revision, status, observed=observed, label=label, counted=counted)
            changes.append(RecordChange(before, after))
        assert registry.write(changes) == set()
    return registry.read(NAMES)


def listed(client: Any, labels: Collection[str], limit: int, listing: Listing) -> list[str]:
    registry, token, found = DocumentRegistry(TABLE, client), None, []
    while True:
        page = registry.page(listing, limit, token, labels)
        assert len(page.documents) <= limit
        found += [record.uri for record in page.documents]
        if (token := page.next_token) is None:
            return found


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rounds=steps,
    labels=some_labels,
    limit=st.integers(1, 5),
    status=st.sampled_from([None, *STATUSES]),
    corpus=st.sampled_from([None, "x"]),
    prefix=st.sampled_from([None, "s3://bucket/0"]),
    name=st.sampled_from([None, "1.MD"]),
)
def test_a_listing_has_the_documents_of_the_labels(
    client: Any,
    rounds: list[dict[str, Any]],
    labels: set[str],
    limit: int,
    status: Status | None,
    corpus: str | None,
    prefix: str | None,
    name: str | None,
) -> None:
    moto_api_backend.reset()
    create_table(client, TABLE)
    records = written(client, rounds)

    found = listed(client, labels, limit, Listing(status, corpus, prefix, name))

    assert found == [
        uri
        for uri, record in sorted(records.items())
        if record.revision
        and record.label in labels
        and (record.status is not Status.DELETED if status is None else record.status is status)
        and corpus in (None, record.corpus)
        and uri.startswith(prefix or "")
        and (name or "").lower() in uri
    ]


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rounds=steps, labels=some_labels, limit=st.integers(1, 3))
def test_counts_cover_only_the_callers_labels(
    client: Any, rounds: list[dict[str, Any]], labels: set[str], limit: int
) -> None:
    moto_api_backend.reset()
    create_table(client, TABLE)
    records = [each for each in written(client, rounds).values() if each.label in labels and each.counted]
    wanted = Counter((key, value) for each in records for key, value in each.observed.attributes.items())

    catalogue, token, paged = Catalogue(client, TABLE, labels), None, []
    while True:
        page = catalogue.page(None, "", limit, token)
        paged += page.facets
        if (token := page.next_token) is None:
            break

    assert {(facet.key, facet.value): facet.documents for facet in catalogue.facets()} == wanted
    assert {(facet.key, facet.value): facet.documents for facet in paged} == wanted
    assert catalogue.documents() == len(records)


def test_a_token_names_no_document_of_another_label(client: Any) -> None:
    moto_api_backend.reset()
    create_table(client, TABLE)
    kinds = {uri: ("a" if number % 2 else "b", Status.INDEXED, "x", 1) for number, uri in enumerate(NAMES)}
    written(client, [kinds])
    registry = DocumentRegistry(TABLE, client)
    token_of_b = registry.page(Listing(), 2, labels=["b"]).next_token

    page = registry.page(Listing(), 2, token_of_b, labels=["a"])

    assert {record.label for record in page.documents} == {"a"}


def test_a_question_never_infers_an_access_label(client: Any) -> None:
    moto_api_backend.reset()
    create_table(client, TABLE)
    registry = DocumentRegistry(TABLE, client)
    for number, uri in enumerate(NAMES):
        attributes = {"access": "ab"[number % 2], "corpus": "xy"[number % 2]}
        observed = Observation('"e"', attributes=attributes, label=attributes["access"])
        counted = counted_under(attributes, has_label=True)
        after = DocumentRecord(uri, 0, Status.INDEXED, observed=observed, label=observed.label, counted=counted)
        assert registry.write([RecordChange(DocumentRecord(uri), after)]) == set()

    assert [*Catalogue(client, TABLE).shared_values((), 100).values] == ["access", "corpus"]
    assert [*Catalogue(client, TABLE).shared_values((), 100, ("access",)).values] == ["corpus"]
