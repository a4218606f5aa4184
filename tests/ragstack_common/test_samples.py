"""The sample handbook is what the demo and the end-to-end tests rest on."""

import json
import re
import runpy
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from evaluation import dataset
from local_bedrock.reading import formats
from local_bedrock.reading.parsing import Parser
from ragstack_common.filters import evaluate, parse, to_bedrock

SAMPLES = Path(__file__).parents[2] / "samples"
DOCUMENTS = SAMPLES / "documents"
SIDECAR = ".metadata.json"

MAX_SIDECAR_BYTES = 1024
"""Custom metadata of a chunk in a knowledge base on S3 Vectors. Source: quotas of Amazon Bedrock."""

MAX_LIST_MEMBERS = 10
"""Source: bedrock-agent, MetadataAttributeValue$stringListValue."""

MAX_DOCUMENT_BYTES = 64 * 1024


def names_of_documents() -> list[str]:
    files = (path for path in DOCUMENTS.rglob("*") if path.is_file() and not path.name.endswith(SIDECAR))
    return sorted(path.relative_to(DOCUMENTS).as_posix() for path in files)


def attributes_of(name: str) -> dict[str, Any]:
    sidecar = json.loads((DOCUMENTS / f"{name}{SIDECAR}").read_text(encoding="utf-8"))
    attributes: dict[str, Any] = sidecar["metadataAttributes"]
    return attributes


def questions() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))
    return loaded


def in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def text_of() -> dict[str, str]:
    """What the parser of the local knowledge base reads in each document."""
    parser = Parser()
    read = {name: parser.parse((DOCUMENTS / name).read_bytes(), formats.of_name(name)) for name in names_of_documents()}
    parser.close()
    return {name: in_one_line(document.text) for name, document in read.items()}


documents = pytest.mark.parametrize("name", names_of_documents())
asked = pytest.mark.parametrize("question", questions(), ids=lambda question: question["id"])
asked_with_a_filter = pytest.mark.parametrize(
    "question", [q for q in questions() if "filter" in q], ids=lambda question: question["id"]
)


def test_every_format_of_the_handbook_is_there() -> None:
    suffixes = {Path(name).suffix for name in names_of_documents()}

    assert suffixes == {".md", ".html", ".pdf", ".docx", ".csv"}


def test_one_name_has_a_space_a_plus_sign_and_a_letter_outside_ascii() -> None:
    awkward = [name for name in names_of_documents() if " " in name and "+" in name and not name.isascii()]

    assert len(awkward) == 1
    assert unicodedata.is_normalized("NFC", awkward[0])


def test_every_sidecar_belongs_to_a_document() -> None:
    described = {
        path.relative_to(DOCUMENTS).as_posix().removesuffix(SIDECAR) for path in DOCUMENTS.rglob(f"*{SIDECAR}")
    }

    assert described == set(names_of_documents())


def test_the_two_versions_of_one_document_say_which_they_are() -> None:
    assert attributes_of("product/api-rate-limits-v1.md")["version"] == "1"
    assert attributes_of("product/api-rate-limits-v2.md")["version"] == "2"


@documents
def test_a_document_is_small(name: str) -> None:
    assert 0 < (DOCUMENTS / name).stat().st_size <= MAX_DOCUMENT_BYTES


@documents
def test_a_sidecar_holds_attributes_that_every_vector_store_can_filter(name: str) -> None:
    attributes = attributes_of(name)

    assert (DOCUMENTS / f"{name}{SIDECAR}").stat().st_size <= MAX_SIDECAR_BYTES
    assert {"corpus", "version", "topic"} <= attributes.keys()
    assert all(isinstance(attributes[key], str) for key in ("corpus", "version", "topic"))
    for value in attributes.values():
        assert isinstance(value, str | int | float | bool | list)
        if isinstance(value, list):
            assert 1 <= len(value) <= MAX_LIST_MEMBERS
            assert all(isinstance(member, str) for member in value)


@documents
def test_a_document_has_text(name: str, text_of: dict[str, str]) -> None:
    assert len(text_of[name]) > 500
    assert "(cid:" not in text_of[name]


def test_the_built_files_say_what_their_sources_say(text_of: dict[str, str]) -> None:
    script = runpy.run_path(str(SAMPLES / "build.py"))

    for source, target in script["TARGETS"].items():
        built = text_of[target.removeprefix("documents/")]
        for block in script["parse"]((SAMPLES / source).read_text(encoding="utf-8")):
            assert all(cell in built for row in block.rows for cell in row)


@asked
def test_a_question_can_be_answered_from_the_documents_that_it_expects(
    question: dict[str, Any], text_of: dict[str, str]
) -> None:
    assert 1 <= len(question["expected"]) <= question["within"]

    for name in question["expected"]:
        assert question["answer"] in text_of[name]


@asked_with_a_filter
def test_the_filter_of_a_question_passes_what_it_expects_and_not_everything(question: dict[str, Any]) -> None:
    condition = parse(question["filter"])

    passing = {name for name in names_of_documents() if evaluate(condition, attributes_of(name))}

    assert to_bedrock(condition)
    assert set(question["expected"]) <= passing
    assert len(passing) < len(names_of_documents())


def test_a_filter_changes_the_answer_of_two_questions_at_least(text_of: dict[str, str]) -> None:
    filtered = [question for question in questions() if "filter" in question]

    changed = []
    for question in filtered:
        condition = parse(question["filter"])
        rivals = [
            name
            for name in names_of_documents()
            if attributes_of(name)["topic"] == attributes_of(question["expected"][0])["topic"]
            and not evaluate(condition, attributes_of(name))
        ]
        changed += [question["id"] for name in rivals if question["answer"] not in text_of[name]]

    assert len(set(changed)) >= 2


def test_the_judged_data_set_has_the_sections_of_the_documents() -> None:
    script = runpy.run_path(str(SAMPLES / "build.py"))

    assert (SAMPLES / script["CORPUS"]).read_bytes() == script["build_corpus"]()


def test_the_filter_of_a_judged_question_passes_what_answers_it() -> None:
    data = dataset.read(SAMPLES / "judged")

    for query in data.queries:
        for document, grade in data.judgments[query.id].items():
            assert grade in (1, 2)
            assert query.attributes.items() <= data.documents[document].metadata.items()
