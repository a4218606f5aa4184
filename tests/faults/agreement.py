"""At rest, bucket, registry and knowledge base agree; each difference is reported with the history of the document."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.ingestion.messages import read_checks
from ragstack_common.ingestion.sidecars import read_sidecar
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.settings.names import OTHER_STORE, RESERVED_PREFIX
from tests.faults.faulty_stack import Places
from tests.faults.snapshot import Snapshot

PASSAGES: Final = 100
SOURCE_URI: Final = f"{RESERVED_PREFIX}source-uri"

EXPECTED: Final[Mapping[Status, tuple[str | None, ...]]] = {
    Status.INDEXED: ("INDEXED",),
    Status.PARTIALLY_INDEXED: ("PARTIALLY_INDEXED", "METADATA_PARTIALLY_INDEXED"),
    Status.FAILED: (None, "FAILED", "IGNORED"),
    Status.DELETED: (None,),
}
"""Statuses that the knowledge base may report in each final state; None if it must not have the document."""


def disagreements(now: Snapshot) -> list[str]:
    """Return the differences within a snapshot."""
    return [
        *_check_bucket_and_registry(now),
        *_check_registry_and_knowledge_base(now),
        *_check_catalogue(now),
        *_check_dead_letters(now),
        *_check_jobs(now),
    ]


def _check_bucket_and_registry(now: Snapshot) -> Iterator[str]:
    for uri, objects in now.bucket.items():
        record = now.registry.get(uri)
        if record is None:
            yield f"{uri} is in the bucket, and the registry does not know it"
        elif record.status is Status.DELETED:
            yield describe(record, "is in the bucket")
        elif (record.observed.etag, record.observed.sidecar_etag) != (objects.etag, objects.sidecar_etag):
            yield describe(record, f"the bucket has {objects}, the record {record.observed}")
    for uri, record in now.registry.items():
        if uri not in now.bucket and record.status is not Status.DELETED:
            yield describe(record, "no such object is in the bucket")
        if not record.is_final or record.again:
            yield describe(record, "is not at rest")
        if record.status is Status.FAILED and not record.reason:
            yield describe(record, "FAILED without a reason")


def _check_registry_and_knowledge_base(now: Snapshot) -> Iterator[str]:
    for uri, record in now.registry.items():
        reported = now.knowledge_base.get(uri)
        if record.is_final and reported not in EXPECTED[record.status]:
            yield describe(record, f"the knowledge base says {reported}")
    for uri, reported in now.knowledge_base.items():
        if uri not in now.registry:
            yield f"{uri} is {reported} in the knowledge base, and the registry does not know it"
        if uri not in now.bucket:
            yield f"{uri} is {reported} in the knowledge base, and not in the bucket"


def _check_catalogue(now: Snapshot) -> Iterator[str]:
    recount: Counter[tuple[str, str]] = Counter()
    for record in now.registry.values():
        wanted = (
            counted_under(record.observed.attributes, has_label=record.label is not None)
            if record.status in SEARCHABLE
            else ()
        )
        recount.update(wanted)
        if set(record.counted) != set(wanted):
            yield describe(record, f"is counted under {record.counted}, not {wanted}")
    for value in sorted({*recount, *now.counts}):
        if recount[value] != now.counts.get(value, 0):
            yield f"the catalogue counts {now.counts.get(value, 0)} documents with {value}, there are {recount[value]}"


def _check_dead_letters(now: Snapshot) -> Iterator[str]:
    failed = set()
    for letter in now.dead_letters:
        if "job" in letter or "start" in letter:
            continue  # the jobs themselves are checked
        for uri in read_checks(json.dumps(letter)):
            record = now.registry.get(uri)
            if record is None:
                yield f"the dead-letter queue has {letter} about a document that the registry does not know"
            elif "failed" in letter and record.status is Status.FAILED and letter["failed"]["reason"] == record.reason:
                failed.add(uri)
    for uri, record in now.registry.items():
        if record.status is Status.FAILED and uri not in failed:
            yield describe(record, "FAILED, but no dead letter says so")


def _check_jobs(now: Snapshot) -> Iterator[str]:
    for job in now.jobs:
        if job.is_running:
            yield f"{job} has not ended"
        elif job.status != "COMPLETE" and not job.reason:
            yield f"{job} does not say why it is not COMPLETE"
    if now.gate_closed_until is not None:
        yield f"no job is running, and documents wait until {_time(now.gate_closed_until)}"


def search_disagreements(places: Places, now: Snapshot, words: Mapping[str, str], old: Iterable[str]) -> list[str]:
    """Search for documents as users do.

    Args:
        places: Where to search.
        now: The state at rest.
        words: A word that only the current content of a document has, by URI.
        old: Words of former contents.
    """
    runtime = places.client("bedrock-agent-runtime")
    return [
        *(line for uri, word in words.items() for line in _check_searches(places, runtime, now, uri, word)),
        *(line for word in old if word for line in _check_old(places, runtime, now, word)),
    ]


def _check_searches(places: Places, runtime: Any, now: Snapshot, uri: str, word: str) -> Iterator[str]:
    record = now.registry.get(uri)
    if record is None:
        return
    by_word = _retrieve(places, runtime, word, None, 1)
    if [_uri_of(passage) for passage in by_word] != [uri]:
        yield describe(record, f"a search for its word {word} finds {by_word}")
    passages = _retrieve(places, runtime, word, {"equals": {"key": SOURCE_URI, "value": uri}}, PASSAGES)
    if not any(word in passage["content"]["text"] for passage in passages):
        yield describe(record, f"none of its {len(passages)} passages has its word {word}")
    wanted = _attributes(places, uri) if record.observed.sidecar_etag else {}
    if dict(record.observed.attributes) != wanted:
        yield describe(record, f"its sidecar says {wanted}, its record {record.observed.attributes}")
    for passage in passages:
        found = {key: value for key, value in passage["metadata"].items() if not key.startswith(RESERVED_PREFIX)}
        if found != wanted:
            yield describe(record, f"its sidecar says {wanted}, a passage {found}")
            break


def _check_old(places: Places, runtime: Any, now: Snapshot, word: str) -> Iterator[str]:
    for passage in _retrieve(places, runtime, word, None, 5):
        if word in passage["content"]["text"]:
            uri = _uri_of(passage)
            record = now.registry.get(uri)
            what = f"a search still finds {word}, which it does not have any more"
            yield describe(record, what) if record else f"{uri}: {what}"
            return


def _retrieve(places: Places, runtime: Any, text: str, only: Any, limit: int) -> list[Any]:
    configuration: Any = {"numberOfResults": limit, **({"filter": only} if only else {})}
    answer = runtime.retrieve(
        knowledgeBaseId=places.knowledge_base["knowledgeBaseId"],
        retrievalQuery={"text": text},
        retrievalConfiguration={"vectorSearchConfiguration": configuration},
    )
    return list(answer["retrievalResults"])


def _uri_of(passage: Any) -> str:
    return str(passage["location"]["s3Location"]["uri"])


def _attributes(places: Places, uri: str) -> dict[str, Any]:
    key = uri.removeprefix(f"s3://{places.bucket}/") + SIDECAR_SUFFIX
    body = places.client("s3").get_object(Bucket=places.bucket, Key=key)["Body"].read()
    return dict(read_sidecar(body, OTHER_STORE))


def describe(record: DocumentRecord, what: str) -> str:
    """Describe what is wrong with a document, with its history."""
    lines = [
        f"{record.uri} ({record.id}) is {record.status} after {record.attempts} attempts: {what}",
        *(f"    {_time(line.at)} {line.status} {line.reason or ''}".rstrip() for line in record.history),
        f"    {record}",
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S.%f")[:-3]
