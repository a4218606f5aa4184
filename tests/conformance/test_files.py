"""Real files of every kind, good and broken: each ends INDEXED, or FAILED with a reason for a person."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.world import new_name
from tests.local_bedrock.support import Bedrock, s3_document, s3_identifier
from tests.support.soak import SOAK

pytestmark = pytest.mark.xdist_group("files")

BATCH = 10
LARGE_BYTES = 100_000
OF_THE_LARGE_ONE_IN = 1 if SOAK else 30
"""They take most of the time: a short run takes some of them, and all of the others."""
_MAX_REASON = 500
# Words of programmers: class names, traces, addresses in memory, paths of modules, and unexpected errors.
_NOT_FOR_PEOPLE = re.compile(
    r"Traceback|[a-z]Error\b|Exception\b|NoneType|<class|<module|0x[0-9a-f]{4}|\b__\w+__\b|\.py\b|errno"
    r"|codec can't|its log has|ended its reader",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def details(bedrock: Bedrock, s3: Any, shared_data: Path) -> dict[str, dict[str, Any]]:
    """What became of each file, by its name."""
    bucket = new_name()
    s3.create_bucket(Bucket=bucket)
    source = bedrock.s3_source(bedrock.knowledge_base(new_name()), bucket)
    names = list(_uploaded(s3, bucket, shared_data / "files"))
    for first in range(0, len(names), BATCH):
        source.ingest(*(s3_document(bucket, name) for name in names[first : first + BATCH]))
    found: dict[str, dict[str, Any]] = {}
    for first in range(0, len(names), BATCH):
        batch = names[first : first + BATCH]
        found.update(zip(batch, source.settled(*(s3_identifier(bucket, name) for name in batch)), strict=True))
    return found


def _uploaded(s3: Any, bucket: str, folder: Path) -> Iterator[str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    large = [path for path in files if path.stat().st_size > LARGE_BYTES]
    left_out = set(large) - set(large[::OF_THE_LARGE_ONE_IN])
    for path in files:
        if path not in left_out:
            name = str(path.relative_to(folder))
            s3.put_object(Bucket=bucket, Key=name, Body=path.read_bytes())
            yield name


def test_every_file_ends_indexed_or_failed(details: dict[str, dict[str, Any]]) -> None:
    statuses = [detail["status"] for detail in details.values()]

    assert set(statuses) == {"INDEXED", "FAILED"}
    assert statuses.count("INDEXED") > len(statuses) / 2


def test_a_file_that_failed_has_a_reason_for_people(details: dict[str, dict[str, Any]]) -> None:
    reasons = {name: detail.get("statusReason", "") for name, detail in details.items() if detail["status"] == "FAILED"}

    unfit = {name: reason for name, reason in reasons.items() if not _is_for_people(reason)}

    assert unfit == {}


def test_a_file_that_was_indexed_has_no_complaint(details: dict[str, dict[str, Any]]) -> None:
    complaints = {
        name: detail["statusReason"]
        for name, detail in details.items()
        if detail["status"] == "INDEXED" and detail.get("statusReason")
    }

    assert complaints == {}


def _is_for_people(reason: str) -> bool:
    sentence = reason[:1].isupper() and reason.endswith(".") and len(reason.split()) >= 4
    return sentence and len(reason) <= _MAX_REASON and not _NOT_FOR_PEOPLE.search(reason)
