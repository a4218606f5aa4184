"""Access labels of documents: what their sidecars say counts only as far as their prefix permits."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.ingestion.observation import Observer

POLICY = AccessPolicy(
    labels={"public": {}, "hr": {}, "board": {}},
    prefixes={
        "people/": {"default": "hr", "labels": ["public"]},
        "drafts/": {"labels": ["hr"]},
    },
)


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="docs")
        client.put_bucket_versioning(Bucket="docs", VersioningConfiguration={"Status": "Enabled"})
        yield client


def put(s3: Any, key: str, sidecar: Any = None) -> str:
    s3.put_object(Bucket="docs", Key=key, Body=b"text")
    s3.delete_object(Bucket="docs", Key=f"{key}.metadata.json")
    if sidecar is not None:
        body = sidecar if isinstance(sidecar, bytes) else json.dumps(sidecar).encode()
        s3.put_object(Bucket="docs", Key=f"{key}.metadata.json", Body=body)
    return f"s3://docs/{key}"


def sidecar(s3: Any, key: str) -> Any:
    return json.loads(s3.get_object(Bucket="docs", Key=f"{key}.metadata.json")["Body"].read())


@pytest.mark.parametrize(
    ("key", "attributes", "label"),
    [
        ("people/a.md", {}, "hr"),
        ("people/a.md", {"topic": "leave"}, "hr"),
        ("people/a.md", {"access": "public", "topic": "leave"}, "public"),
        ("people/a.md", {"access": "board", "topic": "leave"}, "hr"),
        ("people/a.md", {"access": ["public"]}, "hr"),
        ("drafts/a.md", {"access": "public"}, None),
        ("elsewhere/a.md", {"access": "public", "topic": "leave"}, None),
    ],
)
def test_sidecars_get_the_label_that_counts(s3: Any, key: str, attributes: dict[str, Any], label: str | None) -> None:
    uri = put(s3, key, {"metadataAttributes": attributes})

    observed = Observer(s3, "OTHER", POLICY).observe(uri)
    again = Observer(s3, "OTHER", POLICY).observe(uri)

    expected = {name: value for name, value in attributes.items() if name != "access"}
    expected |= {} if label is None else {"access": label}
    assert observed.label == label
    assert dict(observed.attributes) == expected
    assert sidecar(s3, key)["metadataAttributes"] == expected
    assert observed.refusal is None
    assert again == observed


def test_a_document_without_a_sidecar_gets_one(s3: Any) -> None:
    uri = put(s3, "people/b.md")

    observed = Observer(s3, "OTHER", POLICY).observe(uri)

    assert (observed.label, dict(observed.attributes)) == ("hr", {"access": "hr"})
    assert sidecar(s3, "people/b.md") == {"metadataAttributes": {"access": "hr"}}
    assert observed.sidecar_etag == s3.head_object(Bucket="docs", Key="people/b.md.metadata.json")["ETag"]


def test_a_document_outside_all_prefixes_gets_no_sidecar(s3: Any) -> None:
    uri = put(s3, "elsewhere/b.md")

    observed = Observer(s3, "OTHER", POLICY).observe(uri)

    assert (observed.label, observed.sidecar_etag) == (None, None)


def test_other_content_of_a_sidecar_is_kept(s3: Any) -> None:
    typed = {"topic": {"value": {"type": "STRING", "stringValue": "leave"}, "includeForEmbedding": True}}
    records = {
        "type": "RECORD_BASED_STRUCTURE_METADATA",
        "recordBasedStructureMetadata": {"contentFields": [{"fieldName": "text"}]},
    }
    uri = put(s3, "people/c.csv", {"metadataAttributes": typed, "documentStructureConfiguration": records})

    Observer(s3, "OTHER", POLICY).observe(uri)

    assert sidecar(s3, "people/c.csv") == {
        "metadataAttributes": {**typed, "access": "hr"},
        "documentStructureConfiguration": records,
    }


def test_a_broken_sidecar_is_left_as_it_is(s3: Any) -> None:
    uri = put(s3, "people/d.md", b"{no json")

    observed = Observer(s3, "OTHER", POLICY).observe(uri)

    assert observed.label == "hr"
    assert observed.refusal is not None
    assert s3.get_object(Bucket="docs", Key="people/d.md.metadata.json")["Body"].read() == b"{no json"


def test_a_sidecar_without_room_for_the_label_is_refused(s3: Any) -> None:
    uri = put(s3, "people/e.md", {"metadataAttributes": {"note": "x" * 1005}})

    observed = Observer(s3, "S3_VECTORS", POLICY).observe(uri)

    assert observed.label == "hr"
    assert str(observed.refusal).startswith("The sidecar has no room for the access label: ")


def test_a_newer_sidecar_of_someone_else_wins(s3: Any) -> None:
    uri = put(s3, "people/f.md", {"metadataAttributes": {"topic": "old"}})
    newer = json.dumps({"metadataAttributes": {"topic": "new", "access": "public"}}).encode()
    writes: list[int] = []

    def interfere(**_: Any) -> None:
        if not writes:
            writes.append(1)
            s3.put_object(Bucket="docs", Key="people/f.md.metadata.json", Body=newer)

    s3.meta.events.register("before-call.s3.PutObject", interfere)
    try:
        observed = Observer(s3, "OTHER", POLICY).observe(uri)
    finally:
        s3.meta.events.unregister("before-call.s3.PutObject", interfere)

    assert (observed.label, dict(observed.attributes)) == ("public", {"topic": "new", "access": "public"})


def test_without_an_access_file_nothing_is_written(s3: Any) -> None:
    uri = put(s3, "people/g.md", {"metadataAttributes": {"access": "anything"}})

    observed = Observer(s3, "OTHER").observe(uri)

    assert (observed.label, dict(observed.attributes)) == (None, {"access": "anything"})


DECOMPOSED = "Geba\u0308ude"


def test_names_in_a_sidecar_are_written_in_the_form_in_which_filters_compare_them(s3: Any) -> None:
    attributes = {
        "access": "public",
        DECOMPOSED: [DECOMPOSED],
        "topic": {"value": {"type": "STRING", "stringValue": DECOMPOSED}, "includeForEmbedding": True},
    }
    uri = put(s3, "people/a.md", {"metadataAttributes": attributes})

    observed = Observer(s3, "OTHER", POLICY).observe(uri)

    written = {"access": "public", "Geb\u00e4ude": ["Geb\u00e4ude"], "topic": "Geb\u00e4ude"}
    assert observed.attributes == written
    kept = {"value": {"type": "STRING", "stringValue": "Geb\u00e4ude"}, "includeForEmbedding": True}
    assert sidecar(s3, "people/a.md") == {"metadataAttributes": {**written, "topic": kept}}
    assert Observer(s3, "OTHER", POLICY).observe(uri) == observed


def test_a_document_keeps_its_key_and_gets_the_label_of_its_folder_in_another_form(s3: Any) -> None:
    policy = AccessPolicy(
        labels={"public": {}, "hr": {}}, prefixes={"": {"default": "public"}, "B\u00fcro/": {"default": "hr"}}
    )
    uri = put(s3, "Bu\u0308ro/a.md")

    assert Observer(s3, "OTHER", policy).observe(uri).label == "hr"
    assert sidecar(s3, "Bu\u0308ro/a.md") == {"metadataAttributes": {"access": "hr"}}
