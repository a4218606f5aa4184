"""Quotas: calls a second, work at once, sizes."""

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from local_bedrock.http.wire import SERVICES
from local_bedrock.limits.admission import TokenBucket
from local_bedrock.limits.quotas import QuotaError, Quotas
from local_bedrock.options import Pace
from local_bedrock.server import running
from ragstack_common.ingestion import ingest_documents_with_retry
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    Bedrock,
    Clock,
    Source,
    ask,
    client,
    custom_identifier,
    knowledge_base_request,
    managed_request,
    serving,
)
from tests.support.waiting import eventually

UNLIMITED = Quotas().with_settings([f"{name}=off" for name in vars(Quotas())])
ONE_CALL = 0.001
"""A second; the bucket holds one call, and no test is so slow that it holds another."""
AN_HOUR = 3600.0
"""Nothing that is to take so long ends within the life of a test."""
MOMENT = 1 / 32
"""Seconds of a clock that only the test advances."""


@contextmanager
def limited(folder: Path, *settings: str, **options: Any) -> Iterator[Bedrock]:
    """Run a local Bedrock without any limit but these."""
    with running(folder, quotas=UNLIMITED.with_settings(settings), **options) as url:
        yield Bedrock.at(url)


def refused(call: Any, **arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(ClientError) as refusal:
        call(**arguments)
    answer = refusal.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer["Error"]["Message"]


@cache
def operations() -> set[str]:
    session = botocore.session.get_session()
    return {name for service in SERVICES for name in session.get_service_model(service).operation_names}


def test_the_quotas_equal_those_of_aws() -> None:
    quotas = Quotas()

    rates = {name: quotas.calls_per_second(name) for name in operations()}

    assert rates["StartIngestionJob"] == 0.1
    assert rates["Retrieve"] == rates["RetrieveAndGenerate"] == 20
    assert {rates[name] for name in rates if name.endswith("KnowledgeBaseDocuments")} == {5}
    assert quotas.concurrent_document_requests == 10
    assert rates["Converse"] == math.inf


def test_every_rate_belongs_to_an_operation_that_there_is() -> None:
    limited_names = {name for name in operations() if Quotas().calls_per_second(name) < math.inf}

    assert len(limited_names) == sum(name.endswith("_per_second") for name in vars(Quotas()))


def test_quotas_list_their_differences_from_those_of_aws() -> None:
    changed = Quotas().with_settings(["retrieve_per_second=2", "rerank_per_second=off"])

    assert str(Quotas()) == "those of AWS"
    assert str(changed) == "those of AWS, except retrieve_per_second=2, rerank_per_second=off"


@pytest.mark.parametrize(
    "setting",
    ["retreive_per_second=1", "=1", "retrieve_per_second", "retrieve_per_second=0", "retrieve_per_second=nan"],
)
def test_an_invalid_setting_is_refused_by_its_name(setting: str) -> None:
    with pytest.raises(QuotaError, match=f"{setting.partition('=')[0]}: .*Write a quota as"):
        Quotas().with_settings([setting])


@given(
    per_second=st.floats(0.05, 50),
    waits=st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_a_bucket_never_admits_more_than_its_size_and_rate(per_second: float, waits: list[float]) -> None:
    clock = Clock()
    bucket = TokenBucket(per_second, clock)
    taken_at = []

    for wait in waits:
        clock.now += wait
        if bucket.take() == 0:
            taken_at.append(clock.now)

    for first, start in enumerate(taken_at):
        for count, end in enumerate(taken_at[first:], start=1):
            assert count <= max(1.0, per_second) + (end - start) * per_second + 1e-6
    assert all(earlier <= later for earlier, later in pairwise(taken_at))


def test_a_call_too_many_is_throttled_and_other_operations_are_not(tmp_path: Path) -> None:
    with limited(tmp_path, f"list_knowledge_bases_per_second={ONE_CALL}") as bedrock:
        bedrock.agent.list_knowledge_bases()

        answer = refused(bedrock.agent.list_knowledge_bases)
        raw = ask(bedrock.url, "POST", "/knowledgebases/", b"{}")

        assert answer == (429, "ThrottlingException", "Rate exceeded")
        assert (raw[0], raw[1]["retry-after"]) == (429, str(round(1 / float(ONE_CALL))))
        bedrock.knowledge_base("not-throttled")


def test_a_throttled_search_succeeds_when_its_second_is_over(tmp_path: Path) -> None:
    clock = Clock()
    with limited(tmp_path, "retrieve_per_second=2", monotonic=clock) as bedrock:
        arguments = {"knowledgeBaseId": bedrock.knowledge_base("searched"), "retrievalQuery": {"text": "heron"}}
        bedrock.runtime.retrieve(**arguments)
        bedrock.runtime.retrieve(**arguments)

        status, code, message = refused(bedrock.runtime.retrieve, **arguments)
        clock.now += 0.5
        found = bedrock.runtime.retrieve(**arguments)

        assert (status, code) == (429, "ThrottlingException")
        assert "request rate is too high" in message
        assert found["retrievalResults"] == []


def test_a_call_that_is_refused_counts_too(tmp_path: Path) -> None:
    with limited(tmp_path, f"get_knowledge_base_per_second={ONE_CALL}") as bedrock:
        first = refused(bedrock.agent.get_knowledge_base, knowledgeBaseId="ABCDEFGHIJ")
        second = refused(bedrock.agent.get_knowledge_base, knowledgeBaseId="ABCDEFGHIJ")

    assert (first[0], second[0]) == (404, 429)


def test_concurrent_document_requests_are_limited(tmp_path: Path) -> None:
    clock, quotas = Clock(), UNLIMITED.with_settings(["concurrent_document_requests=2"])
    pace = Pace(indexing_seconds=MOMENT, deletion_seconds=MOMENT)
    with serving(tmp_path, quotas=quotas, pace=pace, clock=clock) as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("busy"))
        other = bedrock.custom_source(bedrock.knowledge_base("other"))
        source.ingest(text_document("a", "one"), text_document("b", "two"))
        other.ingest(text_document("c", "three"))

        ingesting = refused(
            source.bedrock.agent.ingest_knowledge_base_documents, **source.ids, documents=[text_document("d", "four")]
        )
        deleting = refused(
            source.bedrock.agent.delete_knowledge_base_documents,
            **source.ids,
            documentIdentifiers=[custom_identifier("a")],
        )

        assert ingesting == deleting
        assert ingesting[:2] == (400, "ValidationException")
        assert "can't exceed (2)" in ingesting[2]
        clock.now += MOMENT
        source.settled(custom_identifier("a"), custom_identifier("b"))
        source.ingest(text_document("d", "four"))


def test_one_of_many_concurrent_requests_gets_the_last_place(tmp_path: Path) -> None:
    with limited(tmp_path, "concurrent_document_requests=3", pace=Pace(indexing_seconds=AN_HOUR)) as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("crowded"))
        together = threading.Barrier(16)

        def is_accepted(number: int) -> bool:
            together.wait(30)
            try:
                source.ingest(text_document(f"bird-{number}", "wades"))
            except bedrock.agent.exceptions.ValidationException:
                return False
            return True

        with ThreadPoolExecutor(16) as callers:
            accepted = sum(callers.map(is_accepted, range(16)))

        assert accepted == 3


def test_concurrent_ingestion_jobs_are_limited(tmp_path: Path, s3: Any, s3_url: str, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a.txt", Body=b"heron")
    pace = Pace(indexing_seconds=AN_HOUR)
    with limited(tmp_path, "concurrent_ingestion_jobs=1", pace=pace, s3_endpoint=s3_url) as bedrock:
        first = bedrock.s3_source(bedrock.knowledge_base("first"), bucket)
        second = bedrock.s3_source(bedrock.knowledge_base("second"), bucket)
        bedrock.agent.start_ingestion_job(**first.ids)

        status, code, message = refused(bedrock.agent.start_ingestion_job, **second.ids)

        assert (status, code) == (402, "ServiceQuotaExceededException")
        assert "1 ingestion jobs running" in message


def test_knowledge_bases_and_their_data_sources_are_limited(tmp_path: Path) -> None:
    with limited(tmp_path, "knowledge_bases=1", "data_sources_per_knowledge_base=1") as bedrock:
        knowledge_base = bedrock.knowledge_base("only")
        bedrock.custom_source(knowledge_base, "only")
        another = {"dataSourceConfiguration": {"type": "CUSTOM"}, "name": "another"}

        bases = refused(bedrock.agent.create_knowledge_base, **knowledge_base_request("another"))
        sources = refused(bedrock.agent.create_data_source, knowledgeBaseId=knowledge_base, **another)

        assert bases[:2] == sources[:2] == (402, "ServiceQuotaExceededException")


def test_managed_knowledge_bases_have_quotas_of_their_own(tmp_path: Path, s3: Any, s3_url: str, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a.txt", Body=b"heron")
    quotas = ("knowledge_bases=1", "managed_knowledge_bases=2", "data_sources_per_knowledge_base=1")
    own = ("data_sources_per_managed=3", "concurrent_ingestion_jobs=1", "concurrent_ingestion_jobs_per_managed=2")
    with limited(tmp_path, *quotas, *own, pace=Pace(indexing_seconds=AN_HOUR), s3_endpoint=s3_url) as bedrock:
        bedrock.knowledge_base("self-managed")
        base, _other = bedrock.managed_base("first"), bedrock.managed_base("second")
        parameters = {"connectionConfiguration": {"bucketName": bucket}}
        sources = [bedrock.connector(base, "S3", name, **parameters) for name in ("one", "two", "three")]
        sources[0].start_job()
        sources[1].start_job()

        refusals = [
            refused(bedrock.agent.create_knowledge_base, **managed_request("third")),
            refused(bedrock.connector, knowledge_base_id=base, kind="S3", name="four", **parameters),
            refused(sources[2].start_job),
        ]

        assert [each[:2] for each in refusals] == [(402, "ServiceQuotaExceededException")] * 3


def test_the_length_of_a_query_of_a_managed_knowledge_base_is_limited(tmp_path: Path) -> None:
    with limited(tmp_path, "query_characters=10", "query_characters_of_managed=20") as bedrock:
        base = bedrock.managed_base("asked")
        arn = bedrock.agent.get_knowledge_base(knowledgeBaseId=base)["knowledgeBase"]["knowledgeBaseArn"]

        for name in (base, arn):
            bedrock.runtime.retrieve(knowledgeBaseId=name, retrievalQuery={"text": "x" * 20})
            answer = refused(bedrock.runtime.retrieve, knowledgeBaseId=name, retrievalQuery={"text": "x" * 21})

            assert answer[:2] == (400, "ValidationException")
            assert "maximum is 20" in answer[2]


def test_the_length_of_a_query_is_limited(tmp_path: Path) -> None:
    with limited(tmp_path, "query_characters=10") as bedrock:
        knowledge_base = bedrock.knowledge_base("asked")
        bedrock.search(knowledge_base, "x" * 10)

        answer = refused(bedrock.search, knowledge_base_id=knowledge_base, text="x" * 11)

        assert answer[:2] == (400, "ValidationException")
        assert "11 characters" in answer[2]


def test_the_length_of_a_query_on_a_managed_knowledge_base_has_a_quota_of_its_own(tmp_path: Path) -> None:
    with limited(tmp_path, "query_characters=10", "query_characters_of_managed=20") as bedrock:
        base = bedrock.managed_base("asked")
        bedrock.runtime.retrieve(knowledgeBaseId=base, retrievalQuery={"text": "x" * 20})

        answer = refused(bedrock.runtime.retrieve, knowledgeBaseId=base, retrievalQuery={"text": "x" * 21})

        assert answer[2].startswith("The query has 21 characters; the maximum is 20.")


def test_quotas_lose_none_of_two_hundred_documents(tmp_path: Path) -> None:
    clock = Clock()
    # Submitting is held to the quotas; looking how far it has come is not.
    quotas = Quotas().with_settings(["get_knowledge_base_documents_per_second=off"])
    with running(tmp_path, quotas=quotas, monotonic=clock) as url:
        bedrock = Bedrock.at(url)
        source = bedrock.custom_source(bedrock.knowledge_base("filled"))
        names = [f"bird-{number}" for number in range(200)]
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            clock.now += seconds
            eventually(lambda: all(not is_under_way(source, some) for some in tens(names)))

        answer = ingest_documents_with_retry(
            source.knowledge_base_id,
            source.id,
            [text_document(name, f"{name} wades in the marsh.") for name in names],
            client=client("bedrock-agent", url),
            sleep=sleep,
        )

        assert len(answer["documentDetails"]) == 200
        assert slept, "nothing was throttled"
        for some in tens(names):
            assert {detail["status"] for detail in source.settled(*map(custom_identifier, some))} == {"INDEXED"}


def tens(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), 10):
        yield names[start : start + 10]


def is_under_way(source: Source, names: list[str]) -> bool:
    found = source.details(*map(custom_identifier, names))
    return any(detail["status"] not in ("INDEXED", "FAILED", "NOT_FOUND") for detail in found)
