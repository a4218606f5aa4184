"""Jobs of the connector S3 of managed knowledge bases, and access control lists."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from local_bedrock.options import Pace
from local_bedrock.reading import patterns
from local_bedrock.store.condition import FILE_NAME
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    Bedrock,
    Clock,
    Source,
    connector_configuration,
    refusal,
    serving,
)

SLIDES = Path(__file__).parents[2] / "samples" / "more_formats" / "office-in-porto.pptx"
ANN = {"Name": "ann@example.com", "Type": "USER", "Access": "ALLOW"}
BEN = {"Name": "ben@example.com", "Type": "USER", "Access": "ALLOW"}
NOT_BEN = {**BEN, "Access": "DENY"}


def put(s3: Any, bucket: str, *keys: str, body: str = "Herons stand in the shallow water.") -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode())


def put_json(s3: Any, bucket: str, key: str, document: Any) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())


def counts(job: dict[str, Any]) -> dict[str, int]:
    return {name.removeprefix("numberOf"): number for name, number in job["statistics"].items() if number}


def indexed(source: Source) -> list[str]:
    """The keys of the indexed documents."""
    found = source.bedrock.agent.list_knowledge_base_documents(**source.ids)["documentDetails"]
    assert {detail["status"] for detail in found} <= {"INDEXED"}
    return sorted(detail["identifier"]["s3"]["uri"].split("/", 3)[3] for detail in found)


@pytest.fixture
def managed(bedrock: Bedrock) -> str:
    return bedrock.managed_base("connected")


def connected(bedrock: Bedrock, base: str, bucket: str, **parameters: Any) -> Source:
    return bedrock.connector(base, "S3", connectionConfiguration={"bucketName": bucket}, **parameters)


def unprotected(bedrock: Bedrock, base: str, bucket: str, **parameters: Any) -> Source:
    disabled = {"deletionProtectionConfiguration": {"deletionProtectionStatus": "DISABLED"}}
    return connected(bedrock, base, bucket, connector=disabled, **parameters)


def test_a_job_of_a_connector_works_off_the_difference(s3: Any, bucket: str, bedrock: Bedrock, managed: str) -> None:
    source = unprotected(bedrock, managed, bucket)
    put(s3, bucket, "heron.txt", "osprey.txt", "gull.txt")
    put_json(s3, bucket, "heron.txt.metadata.json", {"metadataAttributes": {"topic": "waders"}})

    first = source.synchronised()
    put(s3, bucket, "heron.txt", body="Herons wade.")
    s3.delete_object(Bucket=bucket, Key="osprey.txt")
    second = source.synchronised()

    assert counts(first) == {"DocumentsScanned": 3, "MetadataDocumentsScanned": 1, "NewDocumentsIndexed": 3}
    assert first["textReadyAt"] == first["updatedAt"]
    assert counts(second) == {
        "DocumentsScanned": 2,
        "MetadataDocumentsScanned": 1,
        "ModifiedDocumentsIndexed": 1,
        "DocumentsDeleted": 1,
        "DocumentsSkipped": 1,
    }
    assert indexed(source) == ["gull.txt", "heron.txt"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"inclusionPrefixes": ["birds/", "fish/"]}, ["birds/heron.md", "birds/heron.txt", "fish/trout.txt"]),
        ({"exclusionPrefixes": ["birds/"]}, ["fish/trout.txt", "readme.md"]),
        ({"inclusionPatterns": [r".*\.md"]}, ["birds/heron.md", "readme.md"]),
        ({"inclusionPatterns": ["heron"]}, []),
        ({"exclusionPatterns": [r".*\.md", "fish/.*"]}, ["birds/heron.txt"]),
        ({"inclusionPrefixes": ["birds/"], "exclusionPatterns": [r".*\.txt"]}, ["birds/heron.md"]),
    ],
)
def test_filters_choose_the_documents_of_a_connector(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str, filters: dict[str, Any], expected: list[str]
) -> None:
    put(s3, bucket, "birds/heron.txt", "birds/heron.md", "fish/trout.txt", "readme.md")
    source = connected(bedrock, managed, bucket, filterConfiguration=filters)

    source.synchronised()

    assert indexed(source) == expected


def test_a_pattern_that_takes_too_long_fails_its_job_and_nothing_else(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MAX_SECONDS", 1)
    put(s3, bucket, f"{'a' * 60}.txt")
    source = connected(bedrock, managed, bucket, filterConfiguration={"exclusionPatterns": ["(a+)+b"]})

    job = source.synchronised()

    assert job["status"] == "FAILED"
    assert "avoid nested repetitions" in str(job["failureReasons"])
    assert indexed(source) == []


def test_large_and_unsupported_files_are_skipped_without_an_error(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str
) -> None:
    put(s3, bucket, "heron.txt", "data.bin")
    put(s3, bucket, "large.txt", body="x" * (1024**2 + 1))
    source = connected(bedrock, managed, bucket, filterConfiguration={"maxFileSizeInMegaBytes": "1"})

    job = source.synchronised()

    assert counts(job) == {"DocumentsScanned": 3, "NewDocumentsIndexed": 1, "DocumentsSkipped": 2}
    assert job.get("failureReasons", []) == []
    assert indexed(source) == ["heron.txt"]


def test_managed_knowledge_bases_read_presentations(s3: Any, bucket: str, bedrock: Bedrock, managed: str) -> None:
    s3.put_object(Bucket=bucket, Key="slides.pptx", Body=SLIDES.read_bytes())
    crawled = connected(bedrock, managed, bucket)
    submitted = bedrock.connector(managed, "CUSTOM")
    location = {"sourceType": "S3_LOCATION", "s3Location": {"uri": f"s3://{bucket}/slides.pptx"}}
    document = {"dataSourceType": "CUSTOM", "custom": {"customDocumentIdentifier": {"id": "slides"}, **location}}

    job = crawled.synchronised()
    details = submitted.ingested({"content": document})

    assert counts(job) == {"DocumentsScanned": 1, "NewDocumentsIndexed": 1}
    assert [detail["status"] for detail in details] == ["INDEXED"]


def test_metadata_files_can_have_a_prefix_of_their_own(s3: Any, bucket: str, bedrock: Bedrock, managed: str) -> None:
    put(s3, bucket, "birds/heron.txt")
    wrong = {"metadataAttributes": {"topic": []}, "documentStructureConfiguration": 1}
    put_json(s3, bucket, "birds/heron.txt.metadata.json", wrong)
    put_json(s3, bucket, "metadata/birds/heron.txt.metadata.json", {"metadataAttributes": {"topic": "waders"}})
    filters = {"inclusionPrefixes": ["birds/"]}
    source = connected(bedrock, managed, bucket, filterConfiguration=filters, metadataFilesPrefix="metadata/")

    job = source.synchronised()
    put_json(s3, bucket, "metadata/birds/heron.txt.metadata.json", {"metadataAttributes": {"topic": "birds"}})
    second = source.synchronised()

    assert counts(job)["NewDocumentsIndexed"] == 1
    assert counts(second)["MetadataDocumentsModified"] == 1


def test_a_job_that_would_delete_too_many_documents_deletes_none(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str
) -> None:
    source = connected(bedrock, managed, bucket)
    put(s3, bucket, *(f"{number}.txt" for number in range(10)))
    source.synchronised()
    for number in range(2):
        s3.delete_object(Bucket=bucket, Key=f"{number}.txt")
    put(s3, bucket, "new.txt")

    job = source.synchronised()
    kept = indexed(source)
    put(s3, bucket, "0.txt")
    allowed = source.synchronised()

    assert job["status"] == "COMPLETE"
    assert counts(job) == {"DocumentsScanned": 9, "NewDocumentsIndexed": 1, "DocumentsSkipped": 8}
    assert "would delete 2 of 10 indexed documents, more than 15 %" in job["failureReasons"][0]
    assert len(kept) == 11
    assert counts(allowed)["DocumentsDeleted"] == 1
    assert "1.txt" not in indexed(source)


@pytest.mark.parametrize(("threshold", "deleted"), [(0, 0), (49, 0), (50, 1), (100, 1)])
def test_the_threshold_of_deletions_is_a_percentage(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str, threshold: int, deleted: int
) -> None:
    protection = {"deletionProtectionStatus": "ENABLED", "deletionProtectionThreshold": threshold}
    source = connected(bedrock, managed, bucket, connector={"deletionProtectionConfiguration": protection})
    put(s3, bucket, "heron.txt", "osprey.txt")
    source.synchronised()
    s3.delete_object(Bucket=bucket, Key="heron.txt")

    job = source.synchronised()

    assert job["statistics"]["numberOfDocumentsDeleted"] == deleted


def test_protection_decided_before_a_restart_holds_after_it(tmp_path: Path, s3: Any, s3_url: str, bucket: str) -> None:
    """The documents that a job added before it was killed would otherwise lower the share of its deletions."""
    put(s3, bucket, *(f"{number}.txt" for number in range(5)))
    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
        source = connected(bedrock, bedrock.managed_base("killed"), bucket)
        source.synchronised()
        s3.delete_object(Bucket=bucket, Key="0.txt")
        put(s3, bucket, *(f"new-{number}.txt" for number in range(30)))
        job = source.synchronised()
    # As if it had been killed just before its end.
    apsw.Connection(str(tmp_path / FILE_NAME)).execute(
        "UPDATE ingestion_job SET status = 'IN_PROGRESS' WHERE id = ?", (job["ingestionJobId"],)
    )

    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
        again = Source(bedrock, source.knowledge_base_id, source.id)
        ended = again.ended(job["ingestionJobId"])

        assert (job["status"], ended["status"]) == ("COMPLETE", "COMPLETE")
        assert ended["statistics"]["numberOfDocumentsDeleted"] == 0
        assert "0.txt" in indexed(again)


def test_data_sources_of_a_managed_knowledge_base_run_jobs_at_once(
    tmp_path: Path, s3: Any, s3_url: str, bucket: str
) -> None:
    put(s3, bucket, "heron.txt")
    with serving(tmp_path, clock=Clock(1_000.0), s3_endpoint=s3_url, pace=Pace(indexing_seconds=60)) as bedrock:
        base = bedrock.managed_base("busy")
        first = connected(bedrock, base, bucket, name="first")
        second = connected(bedrock, base, bucket, name="second")
        first.start_job()
        second.start_job()

        with pytest.raises(bedrock.agent.exceptions.ConflictException, match="ongoing ingestion job"):
            first.start_job()


def test_a_job_fails_if_its_bucket_cannot_be_listed(bedrock: Bedrock, managed: str) -> None:
    source = connected(bedrock, managed, "no-such-bucket-at-all")

    job = source.synchronised()

    assert job["status"] == "FAILED"
    assert "textReadyAt" not in job


def test_filters_of_a_connector_can_be_updated_and_its_access_control_not(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str
) -> None:
    put(s3, bucket, "birds/heron.txt", "fish/trout.txt")
    source = unprotected(bedrock, managed, bucket)
    source.synchronised()
    bucket_name = {"connectionConfiguration": {"bucketName": bucket}}
    disabled = {"deletionProtectionConfiguration": {"deletionProtectionStatus": "DISABLED"}}

    def update(**parameters: Any) -> dict[str, Any]:
        configuration = connector_configuration("S3", connector=disabled, **bucket_name, **parameters)
        answer = bedrock.agent.update_data_source(**source.ids, name="s3", dataSourceConfiguration=configuration)
        return dict(answer["dataSource"])

    update(filterConfiguration={"inclusionPrefixes": ["birds/"]})
    source.synchronised()

    assert indexed(source) == ["birds/heron.txt"]
    assert "The aclEnabled of a connector S3 cannot be changed" in refusal(update, aclEnabled=True)
    for pattern in ("[", "a{99999999999}", "(" * 3000 + ")" * 3000):
        assert "A regular expression in inclusionPatterns is not valid" in refusal(
            update, filterConfiguration={"inclusionPatterns": [pattern]}
        )


class Lists:
    """A local Bedrock whose stored access control lists can be read."""

    def __init__(self, bedrock: Bedrock, folder: Path) -> None:
        self.bedrock = bedrock
        self.folder = folder

    def __call__(self) -> dict[str, Any]:
        """The lists by the last part of a document's name; None for no list."""
        connection = apsw.Connection(str(self.folder / FILE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
        rows = connection.execute("SELECT name, acl FROM document").fetchall()
        connection.close()
        return {str(name).rpartition("/")[2]: acl and json.loads(str(acl)) for name, acl in rows}


@pytest.fixture
def lists(tmp_path: Path, s3_url: str) -> Iterator[Lists]:
    with serving(tmp_path, s3_endpoint=s3_url) as bedrock:
        yield Lists(bedrock, tmp_path)


def acl(allow: Sequence[str] = (), deny: Sequence[str] = ()) -> dict[str, list[str]]:
    return {"allow": list(allow), "deny": list(deny)}


def test_a_list_in_the_metadata_file_wins_over_those_of_prefixes(s3: Any, bucket: str, lists: Lists) -> None:
    put(s3, bucket, "team/heron.txt", "team/osprey.txt", "team/private/gull.txt", "other/kite.txt")
    own = {"metadataAttributes": {}, "accessControlList": [BEN, {**ANN, "Access": "DENY"}]}
    put_json(s3, bucket, "team/osprey.txt.metadata.json", own)
    prefixes = [
        {"keyPrefix": f"s3://{bucket}/team/", "aclEntries": [ANN, BEN]},
        {"keyPrefix": f"s3://{bucket}/team/private/", "aclEntries": [NOT_BEN]},
    ]
    put_json(s3, bucket, "acl/lists.json", prefixes)
    file = {"globalAccessControlListS3Uri": f"s3://{bucket}/acl/lists.json"}
    base = lists.bedrock.managed_base("listed")
    source = connected(lists.bedrock, base, bucket, aclEnabled=True, aclConfiguration=file)

    job = source.synchronised()

    assert lists() == {
        "heron.txt": acl(["ann@example.com", "ben@example.com"]),
        "osprey.txt": acl(["ben@example.com"], ["ann@example.com"]),
        "gull.txt": acl(["ann@example.com", "ben@example.com"], ["ben@example.com"]),
    }
    assert counts(job)["DocumentsFailed"] == 1
    assert "Some documents could not be crawled" in job["failureReasons"][0]
    assert "kite" not in json.dumps(job["failureReasons"])


def test_a_changed_file_of_prefixes_applies_to_its_documents_at_the_next_job(
    s3: Any, bucket: str, lists: Lists
) -> None:
    put(s3, bucket, "a/heron.txt", "b/osprey.txt", "c/gull.txt")
    entries = {letter: {"keyPrefix": f"s3://{bucket}/{letter}/", "aclEntries": [ANN]} for letter in "abc"}
    put_json(s3, bucket, "lists.json", list(entries.values()))
    file = {"globalAccessControlListS3Uri": f"s3://{bucket}/lists.json"}
    base = lists.bedrock.managed_base("changed")
    source = connected(lists.bedrock, base, bucket, aclEnabled=True, aclConfiguration=file)
    source.synchronised()
    del entries["c"]
    entries["a"]["aclEntries"] = [BEN]
    put_json(s3, bucket, "lists.json", list(entries.values()))

    job = source.synchronised()

    assert counts(job) == {
        "DocumentsScanned": 3,
        "MetadataDocumentsModified": 1,
        "DocumentsFailed": 1,
        "DocumentsSkipped": 1,
    }
    assert lists() == {"heron.txt": acl(["ben@example.com"]), "osprey.txt": acl(["ann@example.com"])}


@pytest.mark.parametrize("file", [None, b"not JSON", b'{"metadataAttributes": {}, "accessControlList": "Ann"}'])
def test_a_document_that_loses_its_list_is_no_longer_there(
    s3: Any, bucket: str, lists: Lists, file: bytes | None
) -> None:
    put(s3, bucket, "heron.txt")
    put_json(s3, bucket, "heron.txt.metadata.json", {"metadataAttributes": {}, "accessControlList": [ANN]})
    source = connected(lists.bedrock, lists.bedrock.managed_base("lost"), bucket, aclEnabled=True)
    source.synchronised()
    before = lists()
    if file is None:
        s3.delete_object(Bucket=bucket, Key="heron.txt.metadata.json")
    else:
        s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=file)

    job = source.synchronised()

    assert before == {"heron.txt": acl(["ann@example.com"])}
    assert lists() == {}
    assert job["statistics"]["numberOfDocumentsFailed"] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not JSON", "is not JSON"),
        (b'{"keyPrefix": "s3://b/"}', "must be [{"),
        (
            b'[{"keyPrefix": "s3://b/", "aclEntries": [{"Name": "x", "Type": "GROUP", "Access": "ALLOW"}]}]',
            "Type is not",
        ),
        (b'[{"keyPrefix": "s3://b/", "aclEntries": [{"name": "x", "type": "USER", "access": "ALLOW"}]}]', "must be [{"),
        (None, "does not exist"),
    ],
)
def test_an_unusable_file_of_prefixes_fails_the_job(
    s3: Any, bucket: str, bedrock: Bedrock, managed: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        s3.put_object(Bucket=bucket, Key="lists.json", Body=content)
    file = {"globalAccessControlListS3Uri": f"s3://{bucket}/lists.json"}
    source = connected(bedrock, managed, bucket, aclEnabled=True, aclConfiguration=file)

    job = source.synchronised()

    assert job["status"] == "FAILED"
    assert words in job["failureReasons"][0].replace('\\"', '"')


def test_lists_count_only_with_access_control(s3: Any, bucket: str, lists: Lists) -> None:
    put(s3, bucket, "heron.txt")
    put_json(s3, bucket, "heron.txt.metadata.json", {"metadataAttributes": {}, "accessControlList": "nonsense"})

    job = connected(lists.bedrock, lists.bedrock.managed_base("open"), bucket).synchronised()

    assert job["statistics"]["numberOfNewDocumentsIndexed"] == 1
    assert lists() == {"heron.txt": None}


def test_a_custom_document_has_one_source_of_its_list(s3: Any, bucket: str, lists: Lists) -> None:
    base = lists.bedrock.managed_base("custom-lists")
    source = lists.bedrock.connector(base, "CUSTOM", aclEnabled=True)
    put_json(s3, bucket, "heron.metadata.json", {"metadataAttributes": {"year": 2026}, "accessControlList": [ANN]})
    inline = text_document("inline", "Herons stand.", {"year": 2026})
    entries = [{"name": "ben@example.com", "type": "USER", "access": "DENY"}]
    inline["metadata"]["accessControlList"] = entries
    only_list = text_document("only-list", "Herons stand.")
    only_list["metadata"] = {"type": "IN_LINE_ATTRIBUTE", "accessControlList": entries}
    in_file = text_document("in-file", "Herons stand.")
    in_file["metadata"] = {"type": "S3_LOCATION", "s3Location": {"uri": f"s3://{bucket}/heron.metadata.json"}}
    both = {**in_file, "metadata": {**in_file["metadata"], "accessControlList": entries}}

    details = source.ingested(inline, only_list, in_file, text_document("without", "Herons stand."))

    assert [detail["status"] for detail in details] == ["INDEXED"] * 4
    assert lists() == {
        "inline": acl(deny=["ben@example.com"]),
        "only-list": acl(deny=["ben@example.com"]),
        "in-file": acl(["ann@example.com"]),
        "without": acl(),
    }
    assert "cannot have accessControlList" in refusal(lambda: source.ingest(both))


def test_access_control_of_the_connector_custom_can_be_turned_on_and_off(lists: Lists) -> None:
    source = lists.bedrock.connector(lists.bedrock.managed_base("turned"), "CUSTOM")
    source.ingested(text_document("heron", "Herons stand."))
    found = [lists()["heron"]]

    for is_enabled in (True, False):
        configuration = connector_configuration("CUSTOM", aclEnabled=is_enabled)
        lists.bedrock.agent.update_data_source(**source.ids, name="custom", dataSourceConfiguration=configuration)
        found.append(lists()["heron"])

    assert found == [None, acl(), None]


def test_a_list_on_a_source_without_access_control_is_refused(bedrock: Bedrock, managed: str, custom: Source) -> None:
    document = text_document("heron", "Herons stand.", {"year": 2026})
    document["metadata"]["accessControlList"] = [{"name": "ann@example.com", "type": "USER", "access": "ALLOW"}]

    for source in (custom, bedrock.connector(managed, "CUSTOM")):
        assert "The data source has no access control" in refusal(partial(source.ingest, document))


def test_a_new_list_takes_effect_with_the_document(lists: Lists) -> None:
    source = lists.bedrock.connector(lists.bedrock.managed_base("relisted"), "CUSTOM", aclEnabled=True)

    for access in ("ALLOW", "DENY"):
        document = text_document("heron", "Herons stand.", {"year": 2026})
        document["metadata"]["accessControlList"] = [{"name": "ann@example.com", "type": "USER", "access": access}]
        source.ingested(document)

    assert lists() == {"heron": acl(deny=["ann@example.com"])}


def test_results_name_the_source_of_both_connectors(s3: Any, bucket: str, bedrock: Bedrock, managed: str) -> None:
    put(s3, bucket, "birds/grey heron.txt")
    crawled = connected(bedrock, managed, bucket)
    crawled.synchronised()
    submitted = bedrock.connector(managed, "CUSTOM")
    submitted.ingested(text_document("s3://elsewhere/osprey.txt", "Ospreys dive from great height."))

    answer = bedrock.runtime.retrieve(knowledgeBaseId=managed, retrievalQuery={"text": "birds"})

    assert {
        (result["metadata"]["_source_uri"], result["metadata"]["_data_source_id"], result["metadata"]["_language_code"])
        for result in answer["retrievalResults"]
    } == {
        (f"https://{bucket}.s3.amazonaws.com/birds/grey%20heron.txt", crawled.id, "en"),
        ("s3://elsewhere/osprey.txt", submitted.id, "en"),
    }
