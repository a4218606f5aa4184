"""The function for contextual headers, from Bedrock's event to what it writes and answers."""

from ragstack_common.function import metrics

import json
import logging
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from lambdas.contextual_headers import handler as headers
from ragstack_common.core import clients
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.text.contextual_headers import split
from tests.support.events import Context, sample

BUCKET = "intermediate"
EVENT = sample("bedrock_custom_transformation")
FIRST, SECOND = (batch["key"] for batch in EVENT["inputFiles"][0]["contentBatches"])


@pytest.fixture(autouse=True)
def s3() -> Iterator[Any]:
    """The intermediate bucket, and a function that is just deployed."""
    with mock_aws():
        headers.service.cache_clear()
        clients.s3_client.cache_clear()
        metrics.namespace, metrics.service = "RAGStack", "contextual_headers"
        client = boto3.client("s3", region_name="eu-west-1")
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        yield client
        headers.service.cache_clear()


def chunk(text: str, kind: str = "TEXT", **metadata: str) -> dict[str, Any]:
    return {"contentBody": text, "contentType": kind, "contentMetadata": metadata}


def put(s3: Any, key: str, *chunks: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps({"fileContents": list(chunks)}).encode())


def both(s3: Any) -> None:
    put(s3, FIRST, chunk("# Leave\n\n## Annual leave\n\nEvery employee has 27 days."))
    put(s3, SECOND, chunk("Book it early.\n\n## Sick leave\n\nTell your manager."), chunk("A note after three days."))


def written(s3: Any, key: str) -> Any:
    return json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())


def run(event: Any = EVENT) -> Any:
    return headers.handler(event, Context())


def transformed(s3: Any, answer: Any) -> list[tuple[str | None, str]]:
    keys = [batch["key"] for file in answer["outputFiles"] for batch in file["contentBatches"]]
    return [split(content["contentBody"]) for key in keys for content in written(s3, key)["fileContents"]]


def test_every_chunk_has_its_header_and_its_text(s3: Any) -> None:
    both(s3)

    answer = run()

    assert transformed(s3, answer) == [
        ("leave policy 2026\nLeave", "# Leave\n\n## Annual leave\n\nEvery employee has 27 days."),
        ("leave policy 2026\nLeave\nAnnual leave", "Book it early.\n\n## Sick leave\n\nTell your manager."),
        ("leave policy 2026\nLeave\nSick leave", "A note after three days."),
    ]


def test_the_response_lists_every_file_with_new_batches(s3: Any) -> None:
    both(s3)

    (file,) = run()["outputFiles"]

    assert file["originalFileLocation"] == EVENT["inputFiles"][0]["originalFileLocation"]
    assert file["fileMetadata"] == {"topic": "leave"}
    assert file["contentBatches"] == [{"key": f"with-headers/{FIRST}"}, {"key": f"with-headers/{SECOND}"}]


def test_a_second_delivery_changes_nothing_and_the_input_is_kept(s3: Any) -> None:
    both(s3)
    before = written(s3, FIRST)

    first = run()
    once = [written(s3, batch["key"]) for batch in first["outputFiles"][0]["contentBatches"]]
    second = run()

    assert second == first
    assert [written(s3, batch["key"]) for batch in second["outputFiles"][0]["contentBatches"]] == once
    assert written(s3, FIRST) == before


def test_unknown_members_of_a_batch_are_kept(s3: Any) -> None:
    more = {**chunk("Text.", "PDF", page="3"), "contentNew": [1]}
    s3.put_object(Bucket=BUCKET, Key=FIRST, Body=json.dumps({"fileContents": [more], "new": {"a": 1}}).encode())
    put(s3, SECOND)

    key = run()["outputFiles"][0]["contentBatches"][0]["key"]

    document = written(s3, key)
    assert document["new"] == {"a": 1}
    [content] = document["fileContents"]
    assert split(content.pop("contentBody")) == ("leave policy 2026", "Text.")
    assert content == {"contentType": "PDF", "contentMetadata": {"page": "3"}, "contentNew": [1]}


@pytest.mark.parametrize(("used", "fits"), [(900, True), (990, False)])
def test_a_section_is_added_if_1_kb_of_metadata_can_hold_it(s3: Any, used: int, fits: bool) -> None:
    event = deepcopy(EVENT)
    event["inputFiles"][0]["fileMetadata"] = {"topic": "x" * used}
    put(s3, FIRST, chunk("# Leave\n\n27 days.", author="HR"))
    put(s3, SECOND)

    key = run(event)["outputFiles"][0]["contentBatches"][0]["key"]

    [content] = written(s3, key)["fileContents"]
    assert content["contentMetadata"] == {"author": "HR", **({"ragstack_section": "Leave"} if fits else {})}


def test_images_and_videos_are_unchanged(s3: Any) -> None:
    picture = chunk("data:image/png;base64,AAAA", "IMAGE")
    put(s3, FIRST, picture, {"contentType": "VIDEO"})
    put(s3, SECOND)

    key = run()["outputFiles"][0]["contentBatches"][0]["key"]

    assert written(s3, key) == {"fileContents": [picture, {"contentType": "VIDEO"}]}


def test_headings_apply_only_to_their_own_file(s3: Any) -> None:
    event = deepcopy(EVENT)
    event["inputFiles"] = [deepcopy(EVENT["inputFiles"][0]) for _ in range(2)]
    for file, key in zip(event["inputFiles"], (FIRST, SECOND), strict=True):
        file["contentBatches"] = [{"key": key}]
    both(s3)

    found = transformed(s3, run(event))

    assert [header for header, _ in found] == [
        "leave policy 2026\nLeave",
        "leave policy 2026\nSick leave",
        "leave policy 2026\nSick leave",
    ]


@pytest.mark.parametrize(
    ("location", "header"),
    [
        ({"type": "WEB", "web_location": {"url": "https://example.com/help/travel-guide.html"}}, "travel guide"),
        ({"type": "CUSTOM", "custom_document_location": {"id": "policy_7"}}, "policy 7"),
        ({"type": "NEW", "new_location": {"place": "x"}}, None),
    ],
)
def test_the_header_of_a_web_page_or_custom_document_has_its_name(
    s3: Any, location: dict[str, Any], header: str | None
) -> None:
    event = deepcopy(EVENT)
    event["inputFiles"] = [{"originalFileLocation": location, "contentBatches": [{"key": FIRST}]}]
    put(s3, FIRST, chunk("No heading."))

    answer = run(event)

    assert transformed(s3, answer) == [(header, "No heading.")]
    assert answer["outputFiles"][0]["fileMetadata"] == {}


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
@pytest.mark.parametrize(
    ("change", "member"),
    [
        ({"version": "2.0"}, "version"),
        ({"version": None}, "version"),
        ({"bucketName": ""}, "bucketName"),
        ({"inputFiles": None}, "inputFiles"),
        ({"inputFiles": ["s3://documents/a.md"]}, "inputFiles.0"),
    ],
)
def test_a_malformed_event_fails_with_the_name_of_the_member(change: dict[str, Any], member: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"version 1.0: {member}: "):
        run({**EVENT, **change})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"fileContents": [', "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b"[]", "should be an object"),
        (b'{"chunks": []}', "fileContents: Field required"),
        (b'{"fileContents": [{"contentBody": "# Not a heading for others"}, "text"]}', "fileContents.1: "),
        (b'{"fileContents": [{"contentBody": "# Not a heading for others"}, {}]}', "the text has no contentBody"),
        (b'{"fileContents": [{"contentType": "TEXT", "contentBody": null}]}', "the text has no contentBody"),
        (None, "does not exist"),
    ],
)
def test_an_unexpected_batch_is_unchanged_and_the_others_get_headers(
    s3: Any,
    body: bytes | None,
    says: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(s3, SECOND, chunk("Book it early."))
    put(s3, "other", chunk("# Travel"))
    if body is not None:
        s3.put_object(Bucket=BUCKET, Key=FIRST, Body=body)
    event = deepcopy(EVENT)
    event["inputFiles"].append({**deepcopy(EVENT["inputFiles"][0]), "contentBatches": [{"key": "other"}]})

    with caplog.at_level(logging.ERROR, logger="ragstack"):
        first, second = run(event)["outputFiles"]

    assert first["contentBatches"] == [{"key": FIRST}, {"key": f"with-headers/{SECOND}"}]
    assert second["contentBatches"] == [{"key": "with-headers/other"}]
    [content] = written(s3, f"with-headers/{SECOND}")["fileContents"]
    assert split(content["contentBody"]) == ("leave policy 2026", "Book it early.")
    assert body is None or s3.get_object(Bucket=BUCKET, Key=FIRST)["Body"].read() == body
    [logged] = caplog.messages
    assert says in logged
    assert counted(capsys, "BatchesPassedThrough") == 1


@pytest.mark.parametrize("batch", [{}, {"key": ""}, {"key": 7}, {"name": FIRST}, "text", None])
def test_a_batch_without_a_key_is_unchanged(s3: Any, batch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    put(s3, SECOND, chunk("Book it early."))
    event = deepcopy(EVENT)
    event["inputFiles"][0]["contentBatches"][0] = batch

    [file] = run(event)["outputFiles"]

    assert file["contentBatches"] == [batch, {"key": f"with-headers/{SECOND}"}]
    assert counted(capsys, "BatchesPassedThrough") == 1


@pytest.mark.parametrize("batches", [None, "text", {"key": FIRST}])
def test_a_file_without_a_list_of_batches_is_unchanged(
    s3: Any, batches: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    both(s3)
    event = deepcopy(EVENT)
    event["inputFiles"].insert(0, {"originalFileLocation": "unknown", "contentBatches": batches})

    first, second = run(event)["outputFiles"]

    assert first == {"originalFileLocation": "unknown", "fileMetadata": {}, "contentBatches": batches}
    assert second["contentBatches"] == [{"key": f"with-headers/{FIRST}"}, {"key": f"with-headers/{SECOND}"}]
    assert counted(capsys, "BatchesPassedThrough") == 1


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
def test_a_missing_bucket_fails_the_invocation() -> None:
    with pytest.raises(ClientError, match="NoSuchBucket"):
        run({**EVENT, "bucketName": "elsewhere"})


def test_log_and_metrics_count_chunks_and_quote_no_text(
    s3: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    both(s3)

    with caplog.at_level(logging.DEBUG, logger="ragstack"):
        run()

    [record] = [record for record in caplog.records if record.name == "ragstack"]
    assert (record.__dict__["batches"], record.__dict__["chunks"]) == (2, 3)
    assert "Annual" not in str(record.__dict__)
    assert "employee" not in str(record.__dict__)
    [metrics] = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert (metrics["ChunksGivenHeaders"], metrics["BatchesPassedThrough"]) == ([3.0], [0.0])


def counted(capsys: pytest.CaptureFixture[str], metric: str) -> float:
    [metrics] = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    return float(sum(metrics[metric]))
