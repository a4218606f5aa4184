"""Contextual headers: what they find, what they never show, and that both places compose the same."""

import json
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local_bedrock.reading.chunking import Chunk, FixedSize, Strategy, Whole
from local_bedrock.reading.parsing import ParsedDocument, Parser
from ragstack_common.ingestion.chunk_transformation import ChunkTransformation, TransformationEvent
from ragstack_common.reading import formats
from ragstack_common.text.contextual_headers import MARK, compose, split
from ragstack_common.text.positions import SECTION_KEY, section_of
from ragstack_common.text.sections import outline
from ragstack_common.text.tables import TablesInText
from tests.local_bedrock.support import Source, s3_document, serving
from tests.support.soak import SOAK

pytestmark = pytest.mark.xdist_group("sample documents")

SAMPLES = Path(__file__).parents[2] / "samples" / "documents"
DOCUMENTS = sorted(file for file in SAMPLES.rglob("*.*") if file.is_file() and not file.name.endswith(".json"))

HANDBOOK = "gryphon-handbook.md"
TEXT = "## Feeding\n\nIt eats salmon twice a day, and nothing after dusk."
KEEPER = {"value": {"type": "STRING", "stringValue": "Wilhelmina"}, "includeForEmbedding": True}


@pytest.fixture(scope="module", params=[True, False], ids=["with", "without"])
def headers(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def source(headers: bool, tmp_path_factory: pytest.TempPathFactory, s3: Any, s3_url: str) -> Iterator[Source]:
    """Documents in a local Bedrock with or without headers."""
    bucket = f"handbooks-{uuid.uuid4()}"
    s3.create_bucket(Bucket=bucket)
    for key, body in {
        HANDBOOK: TEXT,
        f"{HANDBOOK}.metadata.json": json.dumps({"metadataAttributes": {"keeper": KEEPER}}),
        "tea.md": "The kitchen's handbook is about tea, cups and kettles.",
        "post.md": "Letters leave at noon. The keeper of the stamps is at the desk.",
    }.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode())
    with serving(tmp_path_factory.mktemp("headers"), s3_endpoint=s3_url, contextual_headers=headers) as bedrock:
        source = bedrock.s3_source(bedrock.knowledge_base("handbooks"), bucket)
        source.ingested(
            s3_document(bucket, HANDBOOK, sidecar=True), s3_document(bucket, "tea.md"), s3_document(bucket, "post.md")
        )
        yield source


def first(source: Source, query: str, search: str) -> str:
    return source.texts(query, overrideSearchType=search)[0]


@pytest.mark.parametrize("search", ["SEMANTIC", "HYBRID"])
def test_only_headers_make_a_file_name_searchable(source: Source, headers: bool, search: str) -> None:
    assert (first(source, "gryphon handbook", search) == TEXT) == headers


@pytest.mark.parametrize("search", ["SEMANTIC", "HYBRID"])
def test_an_embedded_attribute_is_searchable_with_and_without_headers(source: Source, search: str) -> None:
    assert first(source, "Wilhelmina", search) == TEXT


def test_what_is_returned_is_the_text_alone(source: Source) -> None:
    texts = source.texts("gryphon handbook feeding Wilhelmina")

    assert TEXT in texts
    assert all("gryphon" not in text and "Wilhelmina" not in text and MARK not in text for text in texts)


BATCHES = 1000 if SOAK else 3
"""Maximum number of batches: each is written and read twice."""
Read = Callable[[Path], ParsedDocument]


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    """Read a document, whose text is then the same to every strategy."""
    parser = Parser()
    yield cache(lambda document: parser.parse(document.read_bytes(), formats.of_name(document.name)))
    parser.close()


def transformed(s3: Any, bucket: str, uri: str, chunks: list[Chunk], chunks_per_batch: int) -> Iterator[Any]:
    """What the function on AWS makes of chunks that come in several batches: their sections, headers and texts."""
    keys = []
    for start in range(0, len(chunks), chunks_per_batch):
        contents = [
            {"contentBody": chunk.text, "contentType": "TEXT", "contentMetadata": {}}
            for chunk in chunks[start : start + chunks_per_batch]
        ]
        keys.append(f"{uri.rpartition('/')[2]}_{start}.JSON")
        s3.put_object(Bucket=bucket, Key=keys[-1], Body=json.dumps({"fileContents": contents}).encode())
    event = {
        "version": "1.0",
        "bucketName": bucket,
        "inputFiles": [
            {
                "originalFileLocation": {"type": "S3", "s3_location": {"uri": uri}},
                "fileMetadata": {},
                "contentBatches": [{"key": key} for key in keys],
            }
        ],
    }
    (file,) = ChunkTransformation(s3).transform(TransformationEvent.from_event(event))["outputFiles"]
    for batch in file["contentBatches"]:
        written = json.loads(s3.get_object(Bucket=bucket, Key=batch["key"])["Body"].read())
        for content in written["fileContents"]:
            yield content["contentMetadata"].get(SECTION_KEY), *split(content["contentBody"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
@pytest.mark.parametrize(
    "strategy",
    [Whole(), FixedSize(60, 20), FixedSize(25, 30)],
    ids=str,
)
def test_chunks_have_the_section_and_header_of_the_document(
    document: Path, strategy: Strategy, read: Read, s3: Any, bucket: str
) -> None:
    """The function sees only batches of chunks, and reconstructs the outline and the tables of the document from them.

    It cannot see that a chunk ends within a row, and then repeats the header of all columns.
    """
    uri = f"s3://documents/{document.name}"
    parsed = read(document)
    tables = TablesInText.of(parsed.text, is_csv=document.suffix == ".csv")
    chunks = list(strategy.cut(parsed.text, _no_embedding, tables).chunks)
    whole = outline(parsed.text)
    title = parsed.title or whole.title

    found = list(transformed(s3, bucket, uri, chunks, max(3, -(-len(chunks) // BATCHES))))

    assert [each[:2] for each in found] == [
        (
            section_of(whole.path_within(chunk.start, chunk.start + len(chunk.text))),
            compose(uri, title, whole.path_at(chunk.start)),
        )
        for chunk in chunks
    ]
    for (_, _, text), chunk in zip(found, chunks, strict=True):
        table = tables.at(chunk.start)
        has_rows = table is None or table.above in chunk.repeated
        assert text == chunk.whole if has_rows else text.endswith(chunk.text)


def _no_embedding(_: Any) -> Any:
    raise AssertionError("these strategies cut by size")
