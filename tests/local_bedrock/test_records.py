"""CSV files whose rows are records: each has its own text and attributes, asked over the API."""

import re
from threading import current_thread
from typing import Any

import pytest

from local_bedrock.ingestion import preparation
from local_bedrock.ingestion.workers import WORKERS
from local_bedrock.reading import metadata
from ragstack_common.ingestion.sidecars import RecordStructure
from ragstack_common.reading.conversion import read_directly
from ragstack_common.reading.formats import UnreadableDocument
from tests.local_bedrock.support import S3_VECTORS, Bedrock, Source, s3_document, s3_identifier
from tests.support.sidecars import record_sidecar

HOMES = """description,city,price,bedrooms
"Spacious home with an updated kitchen,
and a large backyard.",Seattle,450000,3

"Modern condo with windows and ""city"" views.",Portland,325000,2
Charming bungalow with hardwood floors.,Austin,275000,2
"""
LISTINGS = {"source": "listings"}


def put(s3: Any, bucket: str, text: str, sidecar: bytes, key: str = "homes.csv") -> dict[str, Any]:
    s3.put_object(Bucket=bucket, Key=key, Body=text.encode())
    s3.put_object(Bucket=bucket, Key=f"{key}.metadata.json", Body=sidecar)
    return s3_document(bucket, key, sidecar=True)


def found(source: Source, query: str, **configuration: Any) -> dict[str, dict[str, Any]]:
    """What a search finds: the attributes by the beginning of the text."""
    results = source.bedrock.search(source.knowledge_base_id, query, numberOfResults=20, **configuration)
    return {
        result["content"]["text"].split()[0]: {
            key: value for key, value in result["metadata"].items() if not key.startswith("x-amz-bedrock-kb-")
        }
        for result in results
    }


def cities(source: Source, **condition: Any) -> set[str | None]:
    """The cities that a filter lets through, in each mode of search, which must agree."""
    by_mode = [
        {
            attributes.get("city")
            for attributes in found(source, "home", filter=condition, overrideSearchType=m).values()
        }
        for m in ("SEMANTIC", "HYBRID")
    ]
    assert by_mode[0] == by_mode[1]
    return by_mode[0]


def test_the_rows_of_a_csv_file_are_found_with_their_own_attributes(s3: Any, bucket: str, s3_source: Source) -> None:
    document = put(s3, bucket, HOMES, record_sidecar(["description"], ["city", "price"], attributes=LISTINGS))

    (detail,) = s3_source.ingested(document)

    assert detail["status"] == "INDEXED", detail
    assert found(s3_source, "home") == {
        "Spacious": {"city": "Seattle", "price": "450000", "source": "listings"},
        "Modern": {"city": "Portland", "price": "325000", "source": "listings"},
        "Charming": {"city": "Austin", "price": "275000", "source": "listings"},
    }
    assert 'Modern condo with windows and "city" views.' in s3_source.texts("condo")
    assert s3_source.texts("hardwood", numberOfResults=1) == ["Charming bungalow with hardwood floors."]


def test_filters_choose_among_the_rows_of_one_file(s3: Any, bucket: str, s3_source: Source) -> None:
    s3.put_object(Bucket=bucket, Key="other.md", Body=b"A home without a city.")
    document = put(s3, bucket, HOMES, record_sidecar(["description"], attributes=LISTINGS))
    s3_source.ingested(document, s3_document(bucket, "other.md"))
    austin = {"key": "city", "value": "Austin"}

    assert cities(s3_source, equals=austin) == {"Austin"}
    assert cities(s3_source, notEquals=austin) == {"Seattle", "Portland", None}
    assert cities(s3_source, equals={"key": "source", "value": "listings"}) == {"Austin", "Seattle", "Portland"}
    assert cities(s3_source, andAll=[{"equals": {"key": "bedrooms", "value": "2"}}, {"notEquals": austin}]) == {
        "Portland"
    }
    assert cities(s3_source, greaterThan={"key": "price", "value": 0}) == set(), "every value is a string"


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        ((), (), {"city", "price", "bedrooms"}),
        (("city",), (), {"city"}),
        ((), ("city",), {"price", "bedrooms"}),
        (("city", "price"), ("bedrooms",), {"city", "price"}),
    ],
)
def test_columns_are_attributes_as_the_sidecar_says(
    s3: Any, bucket: str, s3_source: Source, include: Any, exclude: Any, names: set[str]
) -> None:
    s3_source.ingested(put(s3, bucket, HOMES, record_sidecar(["description"], include, exclude)))

    assert all(set(attributes) == names for attributes in found(s3_source, "home").values())


def test_a_replaced_or_deleted_file_leaves_nothing_of_its_rows(s3: Any, bucket: str, s3_source: Source) -> None:
    structure = record_sidecar(["description"])
    s3_source.ingested(put(s3, bucket, HOMES, structure))

    s3_source.ingested(put(s3, bucket, "description,city\nHouseboat.,Utrecht\n", structure))
    replaced = found(s3_source, "home")
    s3.delete_object(Bucket=bucket, Key="homes.csv.metadata.json")
    s3_source.ingested(s3_document(bucket, "homes.csv"))
    plain = found(s3_source, "home")
    s3_source.delete(s3_identifier(bucket, "homes.csv"))
    s3_source.settled(s3_identifier(bucket, "homes.csv"))

    assert replaced == {"Houseboat.": {"city": "Utrecht"}}
    assert plain == {"description,city": {}}
    assert found(s3_source, "home") == {}


def test_parents_of_rows_keep_to_their_rows(s3: Any, bucket: str, bedrock: Bedrock, knowledge_base: str) -> None:
    levels = [{"maxTokens": 60}, {"maxTokens": 10}]
    chunking = {
        "chunkingStrategy": "HIERARCHICAL",
        "hierarchicalChunkingConfiguration": {"levelConfigurations": levels, "overlapTokens": 1},
    }
    source = bedrock.s3_source(knowledge_base, bucket, vectorIngestionConfiguration={"chunkingConfiguration": chunking})
    rows = "".join(f"{' '.join(f'{word}{number}.' for number in range(30))},{word}\n" for word in ("Oak", "Elm"))

    source.ingested(put(s3, bucket, f"text,tree\n{rows}", record_sidecar()))

    results = bedrock.search(knowledge_base, "Oak1 Elm1", numberOfResults=20)
    assert {result["metadata"]["tree"] for result in results} == {"Oak", "Elm"}
    assert all(result["content"]["text"].startswith(result["metadata"]["tree"]) for result in results)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("text,city,\nFlat,Bern,\n", {"city": "Bern"}),
        ("text,city\nFlat,Bern,,\n", {"city": "Bern"}),
        ("text,city,,\nFlat,Bern\n", {"city": "Bern"}),
        (",text,,city\n0,Flat,9,Bern\n", {"city": "Bern"}),
        ("text, city ,  price\nFlat, Bern, 5\n", {"city": "Bern", "price": "5"}),
        (' text, "city, part"\nFlat, "Bern, east"\n', {"city, part": "Bern, east"}),
        ('"text","city"\n"Flat","Bern"\n', {"city": "Bern"}),
        ("\n\ntext,city\n\n,\nFlat,Bern\n , \n", {"city": "Bern"}),
        (f"text,city\nFlat,{'B' * 140_000}\n", {"city": "B" * 140_000}),
        ('text,city\nFlat,"Be\nrn"\n', {"city": "Be\nrn"}),
    ],
)
def test_rows_as_spreadsheets_write_them_are_records(text: str, attributes: dict[str, str]) -> None:
    assert metadata.read_records(text, RecordStructure("text")) == [metadata.Record("Flat", attributes)]


@pytest.mark.parametrize(
    "data",
    [
        "text,city\r\nFlat,Zürich\r\n".encode("utf-8-sig"),
        "text,city\nFlat,Zürich\n".encode("utf-16"),
        "text,city\rFlat,Zürich\r".encode(),
    ],
)
def test_rows_are_read_with_a_byte_order_mark_and_with_any_line_ends(data: bytes) -> None:
    assert metadata.read_records(read_directly(data, "csv").text, RecordStructure("text")) == [
        metadata.Record("Flat", {"city": "Zürich"})
    ]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("text;city\nFlat;Bern\n", "separated by semicolons, and the delimiter of records is a comma"),
        ("text;price\nFlat;1200,50\n", "separated by semicolons"),
        ('"text";"city, part"\n"Flat";"Bern"\n', "separated by semicolons"),
        ("city\ttext\nBern\tFlat\n", "separated by tabs"),
        ("city| text\nBern| Flat\n", "separated by vertical bars"),
        ("sep=;\ntext;city\nFlat;Bern\n", "'sep=;', which only Excel understands: remove it"),
        ("sep=,\ntext,city\nFlat,Bern\n", "'sep=,', which only Excel understands"),
        ('"sep=\t"\ntext\tcity\nFlat\tBern\n', "which only Excel understands"),
        ('text\n"Flat"x\n', "Line 2 of the .csv file cannot be read"),
        ("text,city\nFlat\n", "Line 2 of the .csv file has 1 fields, and its header has 2"),
    ],
)
def test_the_reason_names_the_delimiter_of_rows_that_are_not_separated_by_commas(text: str, cause: str) -> None:
    with pytest.raises(UnreadableDocument, match=re.escape(cause)):
        metadata.read_records(text, RecordStructure("text"))


@pytest.mark.parametrize(
    ("text", "sidecar", "reason"),
    [
        (HOMES, record_sidecar(["summary"]), "has no column 'summary', which its metadata file names"),
        (HOMES, record_sidecar(["description"], ["country"]), "has no column 'country'"),
        ("text,a\nx,1,2\n", record_sidecar(), "Line 2 of the .csv file has 3 fields, and its header has 2"),
        ('text,a\n"x"y,1\n', record_sidecar(), "Line 2 of the .csv file cannot be read"),
        ("text,a,a\nx,1,2\n", record_sidecar(), "Two columns of the .csv file have the same name"),
        ("text,a\n,1\n", record_sidecar(), "The file contains no text"),
        ("text,x-amz-bedrock-kb-a\nx,1\n", record_sidecar(), "begins with x-amz-bedrock-kb-"),
        ("text,a\n" + "x,1\n" * 100_001, record_sidecar(), "The .csv file has more than 100,000 rows"),
        ("text", record_sidecar(), "The metadata file describes records, which only a .csv file has"),
    ],
)
def test_a_csv_file_that_does_not_fit_its_sidecar_fails_with_a_reason(
    s3: Any, bucket: str, s3_source: Source, text: str, sidecar: bytes, reason: str
) -> None:
    key = "homes.csv" if "," in text else "note.md"

    (detail,) = s3_source.ingested(put(s3, bucket, text, sidecar, key))

    assert detail["status"] == "FAILED"
    assert reason in detail["statusReason"]


def test_on_s3_vectors_every_row_keeps_to_the_limit_of_attributes(s3: Any, bucket: str, bedrock: Bedrock) -> None:
    source = bedrock.s3_source(bedrock.knowledge_base("records", S3_VECTORS), bucket)
    text = f"text,note\nfits,{'x' * 100}\ntoo much,{'x' * 1100}\n"

    (detail,) = source.ingested(put(s3, bucket, text, record_sidecar()))

    assert detail["status"] == "FAILED"
    assert "takes at most 1,024 bytes" in detail["statusReason"]


def test_a_table_of_records_is_left_to_the_workers_of_large_documents(
    s3: Any, bucket: str, s3_source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    rows = preparation._rows

    def note(*arguments: Any) -> Any:
        threads.add(current_thread().name)
        return rows(*arguments)

    monkeypatch.setattr(preparation, "_rows", note)
    documents = [put(s3, bucket, HOMES, record_sidecar(["description"]), f"{number}.csv") for number in range(6)]

    s3_source.ingest(*documents)
    settled = [each for n in range(6) for each in s3_source.settled(s3_identifier(bucket, f"{n}.csv"))]

    assert {detail["status"] for detail in settled} == {"INDEXED"}
    assert threads <= {f"ingestion-{number}" for number in range(WORKERS)}
