import json
from typing import Any

import pytest

from local_bedrock.store import documents
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    S3_VECTORS,
    Bedrock,
    Source,
    bytes_document,
    custom_identifier,
    refusal,
    s3_document,
    s3_identifier,
)
from tests.support.waiting import eventually

TOKEN = "a-client-token-of-more-than-33-characters-{}"


def test_a_document_in_s3_becomes_searchable(s3: Any, bucket: str, s3_source: Source) -> None:
    s3.put_object(Bucket=bucket, Key="birds/herön +1.md", Body=b"# Herons\n\nHerons stand in the shallow water.")

    accepted = s3_source.ingest(s3_document(bucket, "birds/herön +1.md"))
    settled = s3_source.settled(s3_identifier(bucket, "birds/herön +1.md"))

    assert accepted[0]["status"] == "STARTING"
    assert settled[0]["status"] == "INDEXED"
    result = s3_source.bedrock.search(s3_source.knowledge_base_id, "where do herons stand?")[0]
    assert "shallow water" in result["content"]["text"]
    assert result["content"]["type"] == "TEXT"
    assert result["location"] == {"type": "S3", "s3Location": {"uri": f"s3://{bucket}/birds/herön +1.md"}}
    assert result["metadata"]["x-amz-bedrock-kb-source-uri"] == f"s3://{bucket}/birds/herön +1.md"
    assert result["metadata"]["x-amz-bedrock-kb-data-source-id"] == s3_source.id
    assert 0 < result["score"] <= 1


def test_inline_text_becomes_searchable_with_its_attributes(custom: Source) -> None:
    attributes: dict[str, Any] = {"topic": "birds", "year": 2024, "public": True, "tags": ["water", "wading"]}

    settled = custom.ingested(text_document("heron", "Herons stand in the shallow water.", attributes))

    assert settled[0]["status"] == "INDEXED"
    result = custom.bedrock.search(custom.knowledge_base_id, "herons")[0]
    assert result["location"] == {"type": "CUSTOM", "customDocumentLocation": {"id": "heron"}}
    assert {key: result["metadata"][key] for key in attributes} == attributes


def test_inline_bytes_are_read_by_their_mime_type(custom: Source) -> None:
    page = b"<html><head><title>Birds</title></head><body><p>Herons <b>wade</b>.</p><script>x()</script></body></html>"

    settled = custom.ingested(bytes_document("page", page, "text/html; charset=utf-8"))

    assert settled[0]["status"] == "INDEXED"
    assert custom.texts("herons") == ["Herons wade."]


def test_a_custom_document_can_lie_in_s3(s3: Any, bucket: str, custom: Source) -> None:
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"Herons stand in the shallow water.")
    document = text_document("heron", "")
    document["content"]["custom"] = {
        "customDocumentIdentifier": {"id": "heron"},
        "sourceType": "S3_LOCATION",
        "s3Location": {"uri": f"s3://{bucket}/heron.txt"},
    }

    settled = custom.ingested(document)

    assert settled[0]["status"] == "INDEXED"
    assert custom.texts("herons") == ["Herons stand in the shallow water."]


def test_a_document_that_is_ingested_again_replaces_itself(custom: Source) -> None:
    custom.ingested(text_document("bird", "Herons stand in the shallow water.", {"kind": "heron"}))

    custom.ingested(text_document("bird", "Ospreys dive from great height.", {"kind": "osprey"}))

    results = custom.bedrock.search(custom.knowledge_base_id, "herons or ospreys")
    assert [result["content"]["text"] for result in results] == ["Ospreys dive from great height."]
    assert results[0]["metadata"]["kind"] == "osprey"


def test_the_earlier_version_stays_searchable_when_the_new_one_fails(custom: Source) -> None:
    custom.ingested(text_document("bird", "Herons stand in the shallow water."))

    settled = custom.ingested(bytes_document("bird", b"%PDF-1.7 broken", "application/pdf"))

    assert settled[0]["status"] == "FAILED"
    assert custom.texts("herons") == ["Herons stand in the shallow water."]


def test_readers_see_all_of_the_old_version_or_all_of_the_new_one(bedrock: Bedrock, knowledge_base: str) -> None:
    chunking = {
        "chunkingConfiguration": {
            "chunkingStrategy": "FIXED_SIZE",
            "fixedSizeChunkingConfiguration": {"maxTokens": 12, "overlapPercentage": 1},
        }
    }
    source = bedrock.custom_source(knowledge_base, vectorIngestionConfiguration=chunking)
    versions = {word: ". ".join(f"The {word} bird number {n} stands" for n in range(20)) for word in ("old", "new")}
    source.ingested(text_document("bird", versions["old"]))
    seen = set()

    for round_ in range(6):
        source.ingest(text_document("bird", versions["new" if round_ % 2 == 0 else "old"]))
        ended = False
        while not ended:
            # The last look is one at the new version, however late the first one was.
            ended = source.details(custom_identifier("bird"))[0]["status"] == "INDEXED"
            texts = source.texts("bird number", numberOfResults=100)
            seen.add(("old" in " ".join(texts), "new" in " ".join(texts), len(texts)))

    assert {(old, new) for old, new, _count in seen} == {(True, False), (False, True)}
    assert len({count for _old, _new, count in seen}) == 1


def test_a_deleted_document_is_gone(custom: Source) -> None:
    custom.ingested(text_document("heron", "Herons stand."), text_document("osprey", "Ospreys dive."))

    accepted = custom.delete(custom_identifier("heron"))
    settled = custom.settled(custom_identifier("heron"), custom_identifier("osprey"))

    assert accepted[0]["status"] == "DELETING"
    assert [detail["status"] for detail in settled] == ["NOT_FOUND", "INDEXED"]
    assert custom.texts("herons and ospreys") == ["Ospreys dive."]


def test_a_document_that_was_never_there_is_not_found(custom: Source) -> None:
    assert custom.details(custom_identifier("nobody"))[0]["status"] == "NOT_FOUND"
    assert custom.delete(custom_identifier("nobody"))[0]["status"] == "NOT_FOUND"


UNREADABLE: dict[str, tuple[bytes | None, str]] = {
    "missing.txt": (None, "does not exist in the bucket"),
    "empty.txt": (b"", "The file is empty"),
    "blank.md": (b" \n\t ", "The file is empty"),
    "slides.pptx": (b"PK", "The file type .pptx is not supported: use one of"),
    "README": (b"text", "A file without an extension is not supported"),
    "old.doc": (b"\xd0\xcf\x11\xe0", "The .doc file is damaged"),
    "picture.txt": (bytes(range(32)) * 100, "not text"),
    "picture.pdf": (b"\x89PNG\r\n", "not that of a .pdf file"),
    "broken.pdf": (b"%PDF-1.7\nnonsense", "The .pdf file is damaged"),
    "broken.docx": (b"PK\x03\x04nonsense", "The .docx file is damaged"),
    "broken.xlsx": (b"PK\x03\x04nonsense", "The .xlsx file is damaged"),
    "locked.docx": (b"\xd0\xcf\x11\xe0 encrypted", "is in an older format"),
    "empty.html": (b"<html><script>x()</script></html>", "The file contains no text"),
}


def test_files_that_cannot_be_read_fail_with_a_reason(s3: Any, bucket: str, s3_source: Source) -> None:
    for key, (body, _reason) in UNREADABLE.items():
        if body is not None:
            s3.put_object(Bucket=bucket, Key=key, Body=body)
    keys = list(UNREADABLE)

    settled = [
        detail
        for start in (0, 10)
        for detail in s3_source.ingested(*(s3_document(bucket, key) for key in keys[start:][:10]))
    ]

    settled += s3_source.ingested(s3_document("no-such-bucket-here", "a.txt"))

    assert {detail["status"] for detail in settled} == {"FAILED"}
    assert "does not exist" in settled.pop()["statusReason"]
    for detail, (_body, reason) in zip(settled, UNREADABLE.values(), strict=True):
        assert reason in detail["statusReason"]
    assert s3_source.texts("text") == []


def test_a_sidecar_gives_a_document_its_attributes(s3: Any, bucket: str, s3_source: Source) -> None:
    sidecar = {
        "metadataAttributes": {
            "topic": "birds",
            "year": 2024,
            "public": False,
            "tags": ["water", "wading"],
            "author": {"value": {"type": "STRING", "stringValue": "Audubon"}, "includeForEmbedding": True},
        }
    }
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"They stand in the shallow water.")
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=json.dumps(sidecar).encode())

    s3_source.ingested(s3_document(bucket, "heron.txt", sidecar=True))

    result = s3_source.bedrock.search(s3_source.knowledge_base_id, "Audubon")[0]
    assert result["content"]["text"] == "They stand in the shallow water."
    assert result["score"] > 0.5
    assert result["metadata"]["year"] == 2024
    assert result["metadata"]["tags"] == ["water", "wading"]
    assert result["metadata"]["author"] == "Audubon"


@pytest.mark.parametrize(
    ("sidecar", "reason"),
    [
        (None, "heron.txt.metadata.json does not exist"),
        (b"{not json", "it is not JSON"),
        (b'{"metadataAttributes": {"a": "' + b"x" * 10_240 + b'"}}', "the maximum is 10,240"),
    ],
)
def test_a_sidecar_that_cannot_be_used_fails_its_document(
    s3: Any, bucket: str, s3_source: Source, sidecar: bytes | None, reason: str
) -> None:
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"Herons stand in the shallow water.")
    if sidecar is not None:
        s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=sidecar)

    settled = s3_source.ingested(s3_document(bucket, "heron.txt", sidecar=True))

    assert settled[0]["status"] == "FAILED"
    assert "heron.txt.metadata.json" in settled[0]["statusReason"]
    assert reason.lower() in settled[0]["statusReason"].lower()


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"note": "x" * 1020}, "1,031 bytes in 1 keys"),
        ({f"key-{number}": number for number in range(36)}, "in 36 keys"),
    ],
)
def test_more_metadata_than_s3_vectors_can_keep_fails_the_document(
    bedrock: Bedrock, attributes: dict[str, Any], words: str
) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base(f"vectors-{len(attributes)}", S3_VECTORS))
    least = {key: value[:100] if isinstance(value, str) else value for key, value in list(attributes.items())[:35]}

    settled = source.ingested(text_document("over", "Herons.", attributes), text_document("in", "Ospreys.", least))

    assert [detail["status"] for detail in settled] == ["FAILED", "INDEXED"]
    assert words in settled[0]["statusReason"]
    assert "at most 1,024 bytes (1 KB)" in settled[0]["statusReason"]


def test_bad_metadata_fails_the_update_and_keeps_the_document(s3: Any, bucket: str, s3_source: Source) -> None:
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"Herons stand in the shallow water.")
    s3_source.ingested(s3_document(bucket, "heron.txt"))
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=b"no json")

    updated = s3_source.ingested(s3_document(bucket, "heron.txt", sidecar=True))[0]
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"Herons wade.")
    replaced = s3_source.ingested(s3_document(bucket, "heron.txt", sidecar=True))[0]

    assert updated["status"] == "METADATA_UPDATE_FAILED"
    assert "it is not JSON" in updated["statusReason"]
    assert s3_source.texts("herons") == ["Herons stand in the shallow water."]
    assert replaced["status"] == "FAILED"
    assert s3_source.texts("herons") == ["Herons stand in the shallow water."]


def test_metadata_that_was_mended_is_taken_up_by_the_next_job(s3: Any, bucket: str, s3_source: Source) -> None:
    s3.put_object(Bucket=bucket, Key="heron.txt", Body=b"Herons stand in the shallow water.")
    s3_source.synchronised()
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=b"no json")
    broken = s3_source.synchronised()["statistics"]
    s3.put_object(Bucket=bucket, Key="heron.txt.metadata.json", Body=b'{"metadataAttributes": {"topic": "waders"}}')

    mended = s3_source.synchronised()["statistics"]

    assert (broken["numberOfDocumentsFailed"], broken["numberOfMetadataDocumentsModified"]) == (1, 0)
    assert (mended["numberOfDocumentsFailed"], mended["numberOfMetadataDocumentsModified"]) == (0, 1)
    assert s3_source.details(s3_identifier(bucket, "heron.txt"))[0]["status"] == "INDEXED"


def test_a_request_over_6_mb_submits_nothing(custom: Source) -> None:
    part = "Herons stand in the shallow water. " * 60_000

    message = refusal(lambda: custom.ingest(*(text_document(f"part-{number}", part) for number in range(4))))

    assert "the maximum is 6,291,456 (6 MB)" in message
    assert custom.details(custom_identifier("part-0"))[0]["status"] == "NOT_FOUND"


def test_a_chunk_too_long_for_the_embedding_fails_the_document(bedrock: Bedrock, knowledge_base: str) -> None:
    whole = {"chunkingConfiguration": {"chunkingStrategy": "NONE"}}
    source = bedrock.custom_source(knowledge_base, vectorIngestionConfiguration=whole)

    settled = source.ingested(text_document("long", "x" * 50_001), text_document("short", "x" * 50_000))

    assert [detail["status"] for detail in settled] == ["FAILED", "INDEXED"]
    assert (
        "50,001 characters; the embedding model of the knowledge base takes at most 50,000"
        in settled[0]["statusReason"]
    )


def test_a_data_source_rejects_documents_of_the_other_type(bucket: str, s3_source: Source, custom: Source) -> None:
    document = s3_document(bucket, "a.txt")
    document["metadata"] = text_document("a", "x", {"topic": "birds"})["metadata"]

    mismatch = "doesn't match the type of the data source"
    assert mismatch in refusal(lambda: s3_source.ingest(text_document("a", "text")))
    assert mismatch in refusal(lambda: custom.details(s3_identifier(bucket, "a.txt")))
    assert "use the type S3_LOCATION" in refusal(lambda: s3_source.ingest(document))


def test_a_document_occurs_once_in_a_request(custom: Source) -> None:
    twice = [text_document("a", "one"), text_document("a", "two")]

    assert "more than once" in refusal(lambda: custom.ingest(*twice))


def test_a_refused_request_submits_nothing(custom: Source) -> None:
    broken = text_document("b", "text", {"year": 2024})
    broken["metadata"]["inlineAttributes"][0]["value"] = {"type": "NUMBER"}

    message = refusal(lambda: custom.ingest(text_document("a", "text"), broken))

    assert "needs a numberValue of that type" in message
    assert custom.details(custom_identifier("a"))[0]["status"] == "NOT_FOUND"


def test_the_same_token_and_request_do_the_work_once(custom: Source) -> None:
    request = {"clientToken": TOKEN.format("ingest")}
    document = text_document("a", "Herons stand.")
    first = custom.ingest(document, **request)
    custom.settled(custom_identifier("a"))
    before = custom.details(custom_identifier("a"))[0]["updatedAt"]

    second = custom.ingest(document, **request)

    assert second == first
    assert custom.details(custom_identifier("a"))[0]["updatedAt"] == before


def test_the_same_token_with_another_document_is_refused(custom: Source) -> None:
    request = {"clientToken": TOKEN.format("other")}
    custom.ingest(text_document("a", "Herons stand."), **request)

    message = refusal(lambda: custom.ingest(text_document("a", "Ospreys dive."), **request))

    assert "used before with other parameters" in message


def test_a_document_that_cannot_be_stored_fails_alone(custom: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_content = documents.index_document

    def fail_on_poison(change: Any, document: Any, prepared: Any, now: float) -> None:
        replace_content(change, document, prepared, now)
        if document.name == "poison":
            raise RuntimeError("poisoned")

    monkeypatch.setattr(documents, "index_document", fail_on_poison)

    names = ["heron", "poison", "osprey"]
    settled = custom.ingested(*(text_document(name, f"A bird called {name}.") for name in names))

    assert [detail["status"] for detail in settled] == ["INDEXED", "FAILED", "INDEXED"]
    assert "its log has the details" in settled[1]["statusReason"]
    assert sorted(custom.texts("bird called")) == ["A bird called heron.", "A bird called osprey."]


def test_a_deletion_overtakes_the_ingestion_it_follows(custom: Source) -> None:
    custom.ingest(*(text_document(f"bird-{number}", "Herons stand. " * 2000) for number in range(10)))

    custom.delete(*(custom_identifier(f"bird-{number}") for number in range(10)))

    eventually(lambda: all(d["status"] == "NOT_FOUND" for d in custom.settled(*_ten("bird-"))))
    assert custom.texts("herons") == []


def _ten(prefix: str) -> list[dict[str, Any]]:
    return [custom_identifier(f"{prefix}{number}") for number in range(10)]
