"""Measure how long the function `viewer` takes to show a cited page of a long PDF, in milliseconds.

The PDF has 300 pages. Each request goes through the handler, with S3 and DynamoDB of moto in this process: the figures
include the requests to them and the check of access, and not API Gateway. "opened" reads the file again for each
request, as the first request for a document does; "open" is another page of the same document.

Run: ``python benchmarks/viewing.py [--pages 300] [--requests 20]``.
"""

import argparse
import base64
import contextlib
import io
import json
import os
import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from moto import mock_aws
from parts.measuring import CREDENTIALS, percentile, table
from rich.console import Console

from lambdas.viewer import handler as viewer
from ragstack_common.core.clients import dynamodb_client, s3_client
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.viewing import MAX_KEPT_DOCUMENTS
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from tests.support.events import Context, api_event
from tests.support.pdf_files import report
from tests.support.registry_table import create_table

SEED = 7
BUCKET, TABLE = "documents", "registry"
KEYS = tuple(f"report-{number}.pdf" for number in range(MAX_KEPT_DOCUMENTS + 1))
"""Copies of one file: each is opened again when the others were shown since."""

WORDS = "the leave policy travel reimbursement of costs shall be paid within thirty days after receipt by department"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300, help="pages of the PDF (300)")
    parser.add_argument("--requests", type=int, default=20, help="requests of each kind (20)")
    chosen = parser.parse_args()
    os.environ |= CREDENTIALS | {
        "DOCUMENTS_BUCKET": BUCKET,
        "REGISTRY_TABLE": TABLE,
    }
    viewer.metrics.namespace, viewer.metrics.service = "RAGStack", "viewer"
    random.seed(SEED)
    with mock_aws():
        pages = stored(chosen.pages)
        sizes: list[int] = []
        rows = []
        for name, is_opened, has_page in (
            ("cited page, opened", True, True),
            ("cited page, open", False, True),
            ("first mark of the document, opened", True, False),
        ):
            times = measured(pages, chosen.requests, sizes, is_opened=is_opened, has_page=has_page)
            rows.append([name, f"{median(times):.0f}", f"{percentile(times, 95):.0f}"])
    size = f"{median(sizes) / 1000:.0f} kB of image"
    Console(width=100).print(table(f"A PDF of {chosen.pages} pages", ("request", "median ms", "p95 ms"), rows, size))


def stored(count: int) -> list[str]:
    """Store a PDF that is indexed; return the text of its pages."""
    words = WORDS.split()
    paragraphs = [
        " ".join(f"{random.choice(words)}{number}" if not place % 9 else random.choice(words) for place in range(150))
        for number in range(count * 4)
    ]
    data = report(paragraphs)
    with PdfDocument(data) as document:
        pages = [document.text(number) for number in range(1, min(count, len(document)) + 1)]
    bucket = {"LocationConstraint": CREDENTIALS["AWS_REGION"]}
    s3_client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration=bucket)  # type: ignore[arg-type]
    create_table(dynamodb_client(), TABLE)
    for key in KEYS:
        etag = s3_client().put_object(Bucket=BUCKET, Key=key, Body=data)["ETag"]
        unknown = DocumentRecord(f"s3://{BUCKET}/{key}")
        known = DocumentRecord(unknown.uri, status=Status.INDEXED, observed=Observation(etag=etag, size=len(data)))
        assert not DocumentRegistry(TABLE, dynamodb_client()).write([RecordChange(unknown, known)])
    return pages


def measured(pages: list[str], requests: int, sizes: list[int], *, is_opened: bool, has_page: bool) -> list[float]:
    """Return the milliseconds of each request, without those of the first, which loads libraries."""
    times = []
    for number in range(requests + 1):
        page = random.randrange(len(pages))
        passage = pages[page][200:1500]
        key = KEYS[number % len(KEYS) if is_opened else 0]
        body = {"uri": f"s3://{BUCKET}/{key}", "texts": [passage[300:420], passage[700:900]], "passage": passage}
        started = time.perf_counter()
        answer = answered(viewer.handler, body | ({"page": page + 1} if has_page else {}))
        times.append((time.perf_counter() - started) * 1000)
        assert answer["page"] == page + 1, (answer["page"], page)
        assert answer["unmarked"] == []
        sizes.append(len(base64.b64decode(answer["image"])))
    return times[1:]


def answered(handler: Callable[[Any, Any], Any], body: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        answer = handler(api_event("POST", "/api/view", body), Context())
    return json.loads(answer["body"])


if __name__ == "__main__":
    main()
