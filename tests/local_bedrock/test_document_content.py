"""GetDocumentContent, and the URLs that it returns."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.http.downloads import LIFETIME_SECONDS
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    Bedrock,
    Clock,
    Source,
    bytes_document,
    custom_identifier,
    refusal,
    serving,
)
from tests.support.pdf_files import pages, text
from tests.support.waiting import eventually

HOSTILE = b"<html><title>Herons</title><script>alert(1)</script><p>Herons eat fish.</p></html>"


@pytest.fixture(scope="module")
def source(bedrock: Bedrock) -> Source:
    source = bedrock.connector(bedrock.managed_base("content"), "CUSTOM")
    source.ingested(
        text_document("birds/heron", "Herons eat fish."),
        bytes_document('birds/page\u2028 of "herons".html', HOSTILE, "text/html; charset=utf-8"),
    )
    return source


def content(source: Source, document: str, **more: Any) -> dict[str, Any]:
    return dict(source.bedrock.runtime.get_document_content(**source.ids, documentId=document, **more))


def downloaded(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Fetch a URL without credentials."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=named, method=method), timeout=30) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {name.lower(): value for name, value in error.headers.items()}, error.read()


def test_inline_content_is_downloaded_as_it_was_ingested(source: Source) -> None:
    answer = content(source, "birds/heron")

    status, headers, body = downloaded(answer["presignedUrl"])

    assert answer["presignedUrl"].startswith(source.bedrock.url)
    assert (status, body) == (200, b"Herons eat fish.")
    assert (answer["mimeType"], answer["documentContentLength"]) == ("text/plain", len(body))
    assert headers["content-type"] == "text/plain"
    assert headers["content-length"] == str(len(body))


def test_an_object_is_downloaded_as_it_was_ingested(bedrock: Bedrock, s3: Any, bucket: str) -> None:
    file = pages(text((700, 12, b"(Herons eat fish.)")))
    s3.put_object(Bucket=bucket, Key="birds/heron.pdf", Body=file)
    base = bedrock.managed_base("object")
    crawled = bedrock.connector(base, "S3", connectionConfiguration={"bucketName": bucket})
    crawled.synchronised()
    (found,) = bedrock.runtime.retrieve(knowledgeBaseId=base, retrievalQuery={"text": "herons"})["retrievalResults"]

    raw = content(crawled, found["documentId"], outputFormat="RAW")
    extracted = content(crawled, found["documentId"], outputFormat="EXTRACTED")

    assert (raw["mimeType"], raw["documentContentLength"]) == ("application/pdf", len(file))
    assert downloaded(raw["presignedUrl"])[2] == file
    assert extracted["mimeType"] == "application/json"
    assert json.loads(downloaded(extracted["presignedUrl"])[2])["text"].strip() == "Herons eat fish."
    s3.put_object(Bucket=bucket, Key="birds/heron.pdf", Body=file + b"secret")
    assert downloaded(raw["presignedUrl"])[0] == 404
    assert code(crawled, found["documentId"]) == "ResourceNotFoundException"
    s3.put_object(Bucket=bucket, Key="birds/heron.pdf", Body=file)
    assert downloaded(raw["presignedUrl"])[2] == file
    s3.delete_object(Bucket=bucket, Key="birds/heron.pdf")
    assert downloaded(raw["presignedUrl"])[0] == 404
    assert code(crawled, found["documentId"]) == "ResourceNotFoundException"


def test_a_web_page_is_neither_displayed_nor_run(source: Source) -> None:
    answer = content(source, 'birds/page\u2028 of "herons".html')

    for method in ("GET", "HEAD"):
        status, headers, body = downloaded(answer["presignedUrl"], method)

        assert (status, body) == (200, HOSTILE if method == "GET" else b"")
        assert headers["content-type"] == answer["mimeType"] == "text/html"
        assert headers["content-disposition"].startswith("attachment; filename*=UTF-8''page%E2%80%A8%20of%20%22herons")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert headers["cache-control"] == "private, no-store"


def test_the_text_of_a_web_page_is_extracted_without_its_scripts(source: Source) -> None:
    answer = content(source, 'birds/page\u2028 of "herons".html', outputFormat="EXTRACTED")

    extracted = json.loads(downloaded(answer["presignedUrl"])[2])["text"]

    assert "Herons eat fish." in extracted
    assert "alert" not in extracted


def test_every_url_is_different_and_says_nothing_of_the_document(source: Source) -> None:
    urls = {content(source, "birds/heron")["presignedUrl"] for _ in range(3)}

    assert len(urls) == 3
    assert not any("heron" in url or source.id in url for url in urls)
    assert downloaded(f"{source.bedrock.url}/_ragstack/documents/guessed")[0] == 403


def test_a_url_works_in_the_address_bar_and_not_in_a_web_page(source: Source) -> None:
    url = content(source, "birds/heron")["presignedUrl"]

    assert downloaded(url, sec_fetch_site="none")[0] == 200
    assert downloaded(url, sec_fetch_site="cross-site")[0] == 403


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000.0)


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Bedrock]:
    with serving(tmp_path, clock=clock) as bedrock:
        yield bedrock


def test_a_url_expires_after_five_minutes(timed: Bedrock, clock: Clock) -> None:
    source = timed.connector(timed.managed_base("timed"), "CUSTOM")
    source.ingested(text_document("heron", "Herons eat fish."))
    url = content(source, "heron")["presignedUrl"]

    clock.now += LIFETIME_SECONDS - 1
    before = downloaded(url)[0]
    clock.now += 2
    after, _, message = downloaded(url)

    assert (LIFETIME_SECONDS, before, after) == (300, 200, 403)
    assert b"expired" in message


def test_a_url_ends_with_the_version_of_its_document(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("versions"), "CUSTOM")
    source.ingested(text_document("heron", "Herons eat fish."))
    first = content(source, "heron")["presignedUrl"]

    source.ingested(text_document("heron", "Herons eat frogs."))
    second = content(source, "heron")["presignedUrl"]
    replaced, current = downloaded(first)[0], downloaded(second)[2]
    source.delete(custom_identifier("heron"))
    eventually(lambda: source.details(custom_identifier("heron"))[0]["status"] == "NOT_FOUND")

    assert (replaced, current) == (404, b"Herons eat frogs.")
    assert downloaded(second)[0] == 404
    assert code(source, "heron") == "ResourceNotFoundException"


def test_only_a_user_whom_the_list_allows_gets_a_url(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("listed"), "CUSTOM", aclEnabled=True)
    document = text_document("heron", "Herons eat fish.", {"year": 2026})
    document["metadata"]["accessControlList"] = [{"name": "ann@example.com", "type": "USER", "access": "ALLOW"}]
    source.ingested(document)

    assert downloaded(content(source, "heron", userContext={"userId": "ann@example.com"})["presignedUrl"])[0] == 200
    for context in ({}, {"userContext": {"userId": "ben@example.com"}}):
        assert code(source, "heron", **context) == "AccessDeniedException"


def test_a_document_that_failed_has_no_content(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("failed"), "CUSTOM")
    source.ingested(bytes_document("broken", b"not a PDF", "application/pdf"))

    assert code(source, "broken") == "ResourceNotFoundException"


def test_an_image_in_a_document_is_refused_by_name(source: Source) -> None:
    message = refusal(lambda: content(source, "birds/heron", mediaId="0b7f2f0c-6b3d-4f8e-9a55-0d0f5a6f3c11"))

    assert "mediaId" in message


def test_vector_knowledge_bases_have_no_content(bedrock: Bedrock, custom: Source) -> None:
    custom.ingested(text_document("heron", "Herons eat fish."))

    assert "for MANAGED knowledge bases" in refusal(lambda: content(custom, "heron"))


def code(source: Source, document: str, **more: Any) -> str:
    with pytest.raises(ClientError) as caught:
        content(source, document, **more)
    return str(caught.value.response["Error"]["Code"])
