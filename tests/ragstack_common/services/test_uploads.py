"""Permission to upload a document: what it is bound to, what is refused, and what becomes of attributes."""

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lambdas.documents import handler
from ragstack_common.access.callers import OPERATOR
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.reading.formats import MEDIA_TYPES
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import document_id
from ragstack_common.services.uploads import AttributesChange
from tests.ragstack_common.services.conftest import BUCKET, Aws, Call, error_of
from tests.support.documents import PROGRAM_FILES
from tests.support.sidecars import record_sidecar, typed

PATH = "/api/documents"
REPORT = {"key": "people/report.pdf", "content_type": "application/pdf", "size": 1000}


def policy_of(answer: dict[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads(b64decode(answer["upload"]["fields"]["policy"]))
    return policy


def test_a_document_gets_its_id_and_a_form_that_is_bound_to_it(call: Call) -> None:
    before = datetime.now(UTC)

    status, answer = call("POST", PATH, REPORT)

    assert status == 201
    assert (answer["uri"], answer["key"]) == ("s3://documents/people/report.pdf", "people/report.pdf")
    assert answer["id"] == document_id(answer["uri"])
    assert answer["sidecar_uri"] is None
    assert answer["upload"]["fields"]["key"] == "people/report.pdf"
    assert answer["upload"]["fields"]["Content-Type"] == "application/pdf"
    assert answer["upload"]["size"] == 1000
    conditions = policy_of(answer)["conditions"]
    assert {"bucket": BUCKET} in conditions
    assert {"key": "people/report.pdf"} in conditions
    assert {"Content-Type": "application/pdf"} in conditions
    assert ["content-length-range", 1000, 1000] in conditions
    assert not any(isinstance(condition, list) and condition[0] == "starts-with" for condition in conditions)
    for expiry in (answer["upload"]["expires_at"], policy_of(answer)["expiration"]):
        assert timedelta(minutes=14) < datetime.fromisoformat(expiry) - before < timedelta(minutes=16)


def test_the_form_is_signed_for_the_regional_address_of_the_bucket(call: Call) -> None:
    _, answer = call("POST", PATH, REPORT)

    assert answer["upload"]["fields"]["x-amz-algorithm"] == "AWS4-HMAC-SHA256"
    assert answer["upload"]["fields"]["x-amz-credential"].endswith("/eu-west-1/s3/aws4_request")
    assert answer["upload"]["url"] == "https://s3.eu-west-1.amazonaws.com/documents"


NEW = {**REPORT, "overwrite": False}


def test_a_new_document_gets_an_upload_that_replaces_nothing(call: Call) -> None:
    """The condition is a part of the signature, so a document that appears in between is not replaced either."""
    _, answer = call("POST", PATH, NEW)

    upload = answer["upload"]
    assert (upload["method"], upload["fields"]) == ("PUT", {})
    assert upload["headers"] == {"Content-Type": "application/pdf", "If-None-Match": "*"}
    assert upload["url"].startswith("https://s3.eu-west-1.amazonaws.com/documents/people/report.pdf?")
    signed = parse_qs(urlsplit(upload["url"]).query)
    assert signed["X-Amz-SignedHeaders"] == ["content-length;content-type;host;if-none-match"]
    assert signed["X-Amz-Expires"] == ["900"]


def test_a_document_that_is_there_is_not_replaced_unless_it_is_asked_for(aws: Aws, call: Call) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key=REPORT["key"], Body=b"first")

    refused = call("POST", PATH, {**NEW, "attributes": {"corpus": "people"}})

    assert error_of(refused) == (409, "DocumentExists")
    assert "people/report.pdf is in the bucket" in refused[1]["error"]["message"]
    assert [each["Key"] for each in aws.s3.list_objects_v2(Bucket=BUCKET)["Contents"]] == [REPORT["key"]]
    assert call("POST", PATH, REPORT)[1]["upload"]["method"] == "POST"


def test_the_limits_come_from_the_settings(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLOAD_MAX_BYTES", "1000")
    monkeypatch.setenv("UPLOAD_SECONDS", "60")

    status, answer = call("POST", PATH, REPORT)
    refused = call("POST", PATH, {**REPORT, "size": 1001})

    assert status == 201
    left = datetime.fromisoformat(policy_of(answer)["expiration"]) - datetime.now(UTC)
    assert timedelta(seconds=50) < left <= timedelta(seconds=60)
    assert error_of(refused) == (400, "InvalidDocument")
    assert refused[1]["error"]["message"] == "size: 1,001 bytes are too many; a document may have 1,000"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ({"filename": "a.md"}, "a.md"),
        ({"filename": "a.md", "prefix": ""}, "a.md"),
        ({"filename": "a.md", "prefix": "/"}, "a.md"),
        ({"filename": "a.md", "prefix": "people/leave"}, "people/leave/a.md"),
        ({"filename": "a.md", "prefix": "/people/leave/"}, "people/leave/a.md"),
        ({"key": "a/../Über uns & «mehr» +1.MD"}, "a/../Über uns & «mehr» +1.MD"),
    ],
)
def test_a_name_is_a_key_or_a_file_in_a_folder(call: Call, name: dict[str, str], key: str) -> None:
    status, answer = call("POST", PATH, {**name, "content_type": "text/markdown; charset=utf-8", "size": 1})

    assert (status, answer["key"], answer["uri"]) == (201, key, f"s3://documents/{key}")
    assert {"key": key} in policy_of(answer)["conditions"]


@pytest.mark.parametrize("suffix", sorted(MEDIA_TYPES))
def test_every_supported_file_type_is_accepted(call: Call, suffix: str) -> None:
    assert call("POST", PATH, {**REPORT, "key": f"a{suffix}"})[0] == 201


@pytest.mark.parametrize("name", PROGRAM_FILES)
def test_a_program_file_is_refused(call: Call, name: str) -> None:
    answer = call("POST", PATH, {**REPORT, "key": f"people/{name}"})

    assert error_of(answer) == (400, "InvalidRequest")
    assert "office program or operating system" in answer[1]["error"]["details"][0]["problem"]


@pytest.mark.parametrize(
    ("change", "member", "says"),
    [
        ({"key": ""}, "key", "at least 1"),
        ({"key": None}, "body", "Give either key or filename"),
        ({"filename": "a.md"}, "body", "Give either key or filename"),
        ({"prefix": "people"}, "body", "A prefix goes with filename"),
        ({"key": "people/"}, "key", "not of a folder"),
        ({"key": "../a.md"}, "body", "leads out of the bucket"),
        ({"key": None, "filename": "b.md", "prefix": "a/../.."}, "body", "leads out of the bucket"),
        ({"key": None, "filename": "a/b.md"}, "filename", "Write folders as prefix"),
        ({"key": "a.exe"}, "key", "file type is not supported"),
        ({"key": "x" * 1022 + ".md"}, "key", "at most 1024"),
        ({"key": "a.md.metadata.json"}, "key", "the name of a sidecar"),
        ({"key": "a\nb.md"}, "key", "control characters"),
        ({"key": "${filename}.md"}, "key", "Leave out ${filename}"),
        ({"content_type": "pdf"}, "content_type", "Write a media type, such as text/markdown"),
        ({"content_type": "text/plain\r\nx: y"}, "content_type", "Write a media type"),
        ({"size": 0}, "size", "greater than or equal to 1"),
        ({"size": "7"}, "size", "integer"),
        ({"size": None}, "size", "integer"),
        ({"attributes": []}, "attributes", "dictionary"),
        ({"atributes": {}}, "atributes", "not permitted"),
    ],
)
def test_an_invalid_member_is_named_with_the_reason(
    aws: Aws, call: Call, change: dict[str, Any], member: str, says: str
) -> None:
    answer = call("POST", PATH, {**REPORT, **change})

    assert error_of(answer) == (400, "InvalidRequest")
    (detail,) = answer[1]["error"]["details"]
    assert detail["member"] == member
    assert says in detail["problem"]
    assert aws.keys() == []


def test_a_name_that_is_too_long_is_rejected_with_the_limit(call: Call) -> None:
    most = 133 - len("s3://documents/")

    assert call("POST", PATH, {**REPORT, "key": "x" * (most - 3) + ".md"})[0] == 201
    answer = call("POST", PATH, {**REPORT, "key": "x" * (most - 2) + ".md"})
    assert error_of(answer) == (400, "InvalidDocument")
    assert answer[1]["error"]["message"].startswith(f"key: the name has {most + 1} characters")
    assert answer[1]["error"]["message"].endswith(f"may have {most}")


def test_the_sidecar_is_written_before_the_document_is_uploaded(aws: Aws, call: Call) -> None:
    attributes = {"corpus": "people", "version": "2", "year": 2026, "public": True, "tags": ["a", "ü"], "score": 0.5}

    status, answer = call("POST", PATH, {**REPORT, "attributes": attributes})

    assert (status, answer["sidecar_uri"]) == (201, "s3://documents/people/report.pdf.metadata.json")
    assert aws.keys() == ["people/report.pdf.metadata.json"]
    sidecar = aws.s3.get_object(Bucket=BUCKET, Key="people/report.pdf.metadata.json")
    assert json.loads(sidecar["Body"].read()) == {"metadataAttributes": attributes}
    assert sidecar["ContentType"] == "application/json"


def test_empty_attributes_remove_the_sidecar_and_missing_ones_do_not(aws: Aws, call: Call) -> None:
    call("POST", PATH, {**REPORT, "attributes": {"corpus": "people"}})

    call("POST", PATH, REPORT)
    left = aws.keys()
    status, answer = call("POST", PATH, {**REPORT, "attributes": {}})
    call("POST", PATH, {**REPORT, "attributes": {}})

    assert left == ["people/report.pdf.metadata.json"]
    assert (status, answer["sidecar_uri"], aws.keys(), aws.delete_markers()) == (201, None, [], 1)


ROWS = json.loads(record_sidecar(["text"], ["city"]))["documentStructureConfiguration"]
HOMES = {"key": "homes.csv", "content_type": "text/csv", "size": 9}


def whole_sidecar_of(aws: Aws, key: str) -> Any:
    return json.loads(aws.s3.get_object(Bucket=BUCKET, Key=f"{key}.metadata.json")["Body"].read())


def test_row_settings_and_attributes_are_set_and_kept_apart(aws: Aws, call: Call) -> None:
    both = {"attributes": {"corpus": "homes"}, "document_structure_configuration": ROWS}
    sidecars = []
    changes: tuple[dict[str, Any], ...] = (
        both,
        {"attributes": {"corpus": "flats"}},
        {"document_structure_configuration": {}},
        {"document_structure_configuration": ROWS},
        {"attributes": {}},
        {},
    )
    for change in changes:
        assert call("POST", PATH, {**HOMES, **change})[0] == 201
        sidecars.append(whole_sidecar_of(aws, "homes.csv"))
    call("POST", PATH, {**HOMES, "attributes": {}, "document_structure_configuration": {}})

    rows = {"documentStructureConfiguration": ROWS}
    flats = {"metadataAttributes": {"corpus": "flats"}}
    assert sidecars == [
        {"metadataAttributes": {"corpus": "homes"}, **rows},
        {**flats, **rows},
        flats,
        {**flats, **rows},
        {"metadataAttributes": {}, **rows},
        {"metadataAttributes": {}, **rows},
    ]
    assert aws.keys() == []


def test_changed_attributes_keep_the_row_settings(aws: Aws, call: Call) -> None:
    record = aws.record("homes.csv", Status.INDEXED, aws.put("homes.csv"))
    aws.put("homes.csv.metadata.json", record_sidecar(["text"], ["city"], attributes={"corpus": "homes"}).decode())

    call("PATCH", f"{PATH}/{record.id}", {"attributes": {"corpus": "flats"}})
    changed = whole_sidecar_of(aws, "homes.csv")
    call("PATCH", f"{PATH}/{record.id}", {"attributes": None})

    assert changed == {"metadataAttributes": {"corpus": "flats"}, "documentStructureConfiguration": ROWS}
    assert whole_sidecar_of(aws, "homes.csv")["documentStructureConfiguration"] == ROWS


def test_empty_row_settings_of_another_type_keep_its_attributes(aws: Aws, call: Call) -> None:
    call("POST", PATH, {**REPORT, "attributes": {"corpus": "people"}})

    assert call("POST", PATH, {**REPORT, "document_structure_configuration": {}})[0] == 201
    assert sidecar_of(aws, "people/report.pdf") == {"corpus": "people"}


@pytest.mark.parametrize(
    ("key", "structure", "says"),
    [
        ("homes.csv", {"type": "ROWS"}, "must be"),
        ("homes.csv", {**ROWS, "recordBasedStructureMetadata": {}}, "contentFields must name one column"),
        ("homes.csv", {**ROWS, "recordBasedStructureMetadata": None}, "needs recordBasedStructureMetadata"),
        ("homes.md", ROWS, "only a .csv file has rows"),
    ],
)
def test_invalid_row_settings_are_rejected_before_anything_is_written(
    aws: Aws, call: Call, key: str, structure: dict[str, Any], says: str
) -> None:
    answer = call("POST", PATH, {**HOMES, "key": key, "document_structure_configuration": structure})

    assert error_of(answer) == (400, "InvalidDocument")
    assert answer[1]["error"]["message"].startswith("document_structure_configuration: ")
    assert says in answer[1]["error"]["message"]
    assert aws.keys() == []


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"topic": None}, "'topic' is neither string"),
        ({"corpus": "all"}, "a corpus cannot be called all"),
    ],
)
def test_invalid_attributes_are_rejected_before_anything_is_written(
    aws: Aws, call: Call, attributes: dict[str, Any], says: str
) -> None:
    answer = call("POST", PATH, {**REPORT, "attributes": attributes})

    assert error_of(answer) == (400, "InvalidDocument")
    assert answer[1]["error"]["message"].startswith("attributes: ")
    assert says in answer[1]["error"]["message"]
    assert aws.keys() == []


def test_the_limits_of_s3_vectors_apply_if_it_is_the_store(
    aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {**REPORT, "attributes": {f"key{number}": number for number in range(36)}}

    assert call("POST", PATH, wide)[0] == 201
    aws.s3.delete_object(Bucket=BUCKET, Key="people/report.pdf.metadata.json")
    monkeypatch.setenv("VECTOR_STORE", "S3_VECTORS")
    handler.service.cache_clear()
    answer = call("POST", PATH, wide)
    assert error_of(answer) == (400, "InvalidDocument")
    assert "35 keys" in answer[1]["error"]["message"]
    assert aws.keys() == []


def test_attributes_of_a_document_are_replaced_in_its_sidecar(aws: Aws, call: Call) -> None:
    seen = aws.put("people/report.pdf")
    record = aws.record("people/report.pdf", Status.INDEXED, replace(seen, attributes={"corpus": "law"}))
    aws.put("people/report.pdf.metadata.json", '{"metadataAttributes": {"corpus": "law"}}')

    status, detail = call("PATCH", f"{PATH}/{record.id}", {"attributes": {"corpus": "people", "level": 2}})

    assert status == 202
    assert sidecar_of(aws, "people/report.pdf") == {"corpus": "people", "level": 2}
    assert (detail["status"], detail["attributes"], detail["again"]) == ("INDEXED", {"corpus": "law"}, True)
    assert detail["waiting_for"].startswith("The ingestion function reads the event of the change")
    no_attributes: tuple[dict[str, Any] | None, ...] = (None, {})
    for nothing in no_attributes:
        assert call("PATCH", f"{PATH}/{record.id}", {"attributes": nothing})[0] == 202
        assert aws.keys() == ["people/report.pdf"]


def test_merged_attributes_change_those_that_are_named_and_no_earlier_change(aws: Aws, call: Call) -> None:
    """The registry knows the first change only when its event was processed."""
    record = aws.record("report.pdf", Status.INDEXED, aws.put("report.pdf"))
    path = f"{PATH}/{record.id}"
    aws.put("report.pdf.metadata.json", '{"metadataAttributes": {"corpus": "law", "draft": true}}')

    changes: list[dict[str, Any]] = [{"year": 2026}, {"corpus": "people"}, {"draft": None}]
    for change in changes:
        assert call("PATCH", path, {"attributes": change, "merge": True})[0] == 202

    assert sidecar_of(aws, "report.pdf") == {"corpus": "people", "year": 2026}


def test_the_first_and_the_last_merged_attribute_make_and_delete_the_sidecar(aws: Aws, call: Call) -> None:
    path = f"{PATH}/{aws.record('report.pdf', Status.INDEXED, aws.put('report.pdf')).id}"

    assert call("PATCH", path, {"attributes": {"year": 2026}, "merge": True})[0] == 202
    assert sidecar_of(aws, "report.pdf") == {"year": 2026}
    assert call("PATCH", path, {"attributes": {"year": None}, "merge": True})[0] == 202
    assert aws.keys() == ["report.pdf"]


def test_attributes_that_stay_are_embedded_as_before(aws: Aws, call: Call) -> None:
    """Also if their values change, to another type or form of letters."""
    path = f"{PATH}/{aws.record('report.pdf', Status.INDEXED, aws.put('report.pdf')).id}"
    embedded = {"includeForEmbedding": True}
    entries = {
        "Gebäude": typed("STRING", "stringValue", "A", **embedded),
        "year": typed("NUMBER", "numberValue", 2025, **embedded),
        "topic": typed("STRING", "stringValue", "leave", includeForEmbedding=False),
        "corpus": "law",
    }
    aws.put("report.pdf.metadata.json", json.dumps({"metadataAttributes": entries, "note": 1}))

    merge = {"attributes": {"Geba\u0308ude": ["A", "B"], "corpus": "people", "level": 2}, "merge": True}
    replace_all = {"attributes": {"Gebäude": True, "year": 2026, "level": 3}}
    sidecars = []
    for change in (merge, replace_all):
        assert call("PATCH", path, change)[0] == 202
        sidecars.append(whole_sidecar_of(aws, "report.pdf"))

    assert sidecars == [
        {
            "metadataAttributes": {
                **entries,
                "Gebäude": typed("STRING_LIST", "stringListValue", ["A", "B"], **embedded),
                "corpus": "people",
                "level": 2,
            },
            "note": 1,
        },
        {
            "metadataAttributes": {
                "Gebäude": typed("BOOLEAN", "booleanValue", value=True, **embedded),
                "year": typed("NUMBER", "numberValue", 2026, **embedded),
                "level": 3,
            },
            "note": 1,
        },
    ]


def merge_report(**attributes: Any) -> None:
    """Change attributes of report.pdf, as another instance of the function does."""
    change = AttributesChange(attributes=attributes, merge=True)
    handler.service().uploads.change_attributes("report.pdf", change, OPERATOR)


@contextmanager
def during(aws: Aws, operation: str, **attributes: Any) -> Iterator[None]:
    """Have another client merge attributes just before a call of this operation reaches S3."""
    calls: list[str] = []

    def act(**_: Any) -> None:
        calls.append(operation)
        if len(calls) == 1:
            merge_report(**attributes)

    aws.s3.meta.events.register(f"before-call.s3.{operation}", act)
    try:
        yield
    finally:
        aws.s3.meta.events.unregister(f"before-call.s3.{operation}", act)
    assert calls


@pytest.fixture
def report(aws: Aws) -> str:
    """The path of report.pdf, whose one attribute is the year."""
    aws.put("report.pdf.metadata.json", '{"metadataAttributes": {"year": 2026}}')
    return f"{PATH}/{aws.record('report.pdf', Status.INDEXED, aws.put('report.pdf')).id}"


WITHOUT_YEAR: dict[str, Any] = {"attributes": {"year": None}, "merge": True}


def test_the_last_attribute_is_not_removed_over_a_change_at_the_same_time(aws: Aws, call: Call, report: str) -> None:
    with during(aws, "DeleteObject", corpus="law"):
        lost = call("PATCH", report, WITHOUT_YEAR)
    kept = sidecar_of(aws, "report.pdf")

    assert error_of(lost) == (502, "ServiceUnavailable")
    assert "at the same time: try again" in lost[1]["error"]["message"]
    assert kept == {"year": 2026, "corpus": "law"}
    assert call("PATCH", report, WITHOUT_YEAR)[0] == 202
    assert sidecar_of(aws, "report.pdf") == {"corpus": "law"}


def test_a_change_is_not_written_over_a_removal_at_the_same_time(aws: Aws, call: Call, report: str) -> None:
    with during(aws, "PutObject", year=None):
        lost = call("PATCH", report, {"attributes": {"corpus": "law"}, "merge": True})

    assert error_of(lost) == (502, "ServiceUnavailable")
    assert "at the same time: try again" in lost[1]["error"]["message"]
    assert aws.keys() == ["report.pdf"]


def test_two_removals_of_the_last_attribute_at_the_same_time_are_one(aws: Aws, call: Call, report: str) -> None:
    with during(aws, "DeleteObject", year=None):
        assert call("PATCH", report, WITHOUT_YEAR)[0] == 202

    assert (aws.keys(), aws.delete_markers()) == (["report.pdf"], 1)


def test_attributes_are_not_replaced_over_a_change_at_the_same_time(aws: Aws, call: Call, report: str) -> None:
    with during(aws, "PutObject", corpus="law"):
        lost = call("PATCH", report, {"attributes": {"level": 1}})

    assert error_of(lost) == (502, "ServiceUnavailable")
    assert sidecar_of(aws, "report.pdf") == {"year": 2026, "corpus": "law"}


def test_a_sidecar_that_cannot_be_read_is_not_merged_into(aws: Aws, call: Call) -> None:
    path = f"{PATH}/{aws.record('report.pdf', Status.INDEXED, aws.put('report.pdf')).id}"
    aws.put("report.pdf.metadata.json", '{"metadataAttributes": {"corpus": "law"')

    status, answer = call("PATCH", path, {"attributes": {"year": 2026}, "merge": True})

    assert (status, answer["error"]["code"]) == (400, "InvalidDocument")
    assert answer["error"]["message"].startswith("merge: the sidecar cannot be read; replace its attributes: ")
    assert aws.s3.get_object(Bucket=BUCKET, Key="report.pdf.metadata.json")["Body"].read().endswith(b'"law"')


def test_attributes_are_changed_under_the_rules_of_uploads(aws: Aws, call: Call) -> None:
    record = aws.record("report.pdf", Status.INDEXED, aws.put("report.pdf"))
    gone = aws.record("gone.pdf", Status.DELETED)
    path = f"{PATH}/{record.id}"

    assert error_of(call("PATCH", path, {"attributes": {"corpus": {"a": 1}}})) == (400, "InvalidDocument")
    assert error_of(call("PATCH", path, {})) == (400, "InvalidRequest")
    assert error_of(call("PATCH", path, {"attributes": {}, "more": 1})) == (400, "InvalidRequest")
    assert error_of(call("PATCH", f"{PATH}/{gone.id}", {"attributes": {}})) == (404, "DocumentNotFound")
    assert error_of(call("PATCH", f"{PATH}/{'0' * 32}", {"attributes": {}})) == (404, "DocumentNotFound")
    assert aws.keys() == ["report.pdf"]


def sidecar_of(aws: Aws, key: str) -> Any:
    body = aws.s3.get_object(Bucket=BUCKET, Key=f"{key}.metadata.json")["Body"].read()
    return parse_sidecar(body).attributes
