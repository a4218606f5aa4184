"""The sample handbook is what the demo and the end-to-end tests rest on."""

import json
import re
import runpy
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluation import dataset
from evaluation.answers import has_reference, token_recall
from local_bedrock.reading.parsing import Parser
from ragstack_common.access import AccessRules, Caller, Right
from ragstack_common.access.policy import read_policy
from ragstack_common.core.artefacts import attachments_of
from ragstack_common.filters import evaluate, parse, to_bedrock
from ragstack_common.ingestion.sidecars import read_sidecar
from ragstack_common.reading import formats
from ragstack_common.reading.converting import ConvertingProcess
from ragstack_common.settings.names import S3_VECTORS
from ragstack_local.stack.deployment import installed_recognition

SAMPLES = Path(__file__).parents[2] / "samples"
DOCUMENTS = SAMPLES / "documents"
SIDECAR = ".metadata.json"
MORE = SAMPLES / "more_formats"
KEYS = "samples/documents/"
"""What the demonstration puts before the names of the documents."""

LEAST_CONFIDENCE = 0.9
"""Of the scan: it is a clean page."""


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


@cache
def texts() -> dict[str, str]:
    """Return what the parser of the local knowledge base reads in each document."""
    parser = Parser()
    read = {name: parser.parse((DOCUMENTS / name).read_bytes(), formats.of_name(name)) for name in names_of_documents()}
    parser.close()
    return {name: in_one_line(document.text) for name, document in read.items()}


def test_every_sidecar_belongs_to_a_document() -> None:
    described = {
        path.relative_to(DOCUMENTS).as_posix().removesuffix(SIDECAR) for path in DOCUMENTS.rglob(f"*{SIDECAR}")
    }

    assert described == set(names_of_documents())


def test_every_vector_store_can_filter_the_sidecars() -> None:
    for name in names_of_documents():
        sidecar = (DOCUMENTS / f"{name}{SIDECAR}").read_bytes()

        assert {"corpus", "version", "topic"} <= read_sidecar(sidecar, S3_VECTORS).keys(), name


def test_the_built_files_say_what_their_sources_say() -> None:
    script = runpy.run_path(str(SAMPLES / "build.py"))

    for source, target in script["BUILT_FILES"].items():
        built = texts()[target.removeprefix("documents/")]
        for block in script["parse"]((SAMPLES / source).read_text(encoding="utf-8")):
            assert all(cell in built for row in block.rows for cell in row)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["office-in-porto", "coffee-machines", "warehouse-lease"])
def test_the_files_of_more_formats_say_what_their_sources_say(source: str) -> None:
    script = runpy.run_path(str(SAMPLES / "build.py"))
    built = SAMPLES / script["MORE_FORMATS"][f"sources/{source}.txt"]
    if built.suffix == ".pdf" and installed_recognition() is None:
        pytest.skip("text recognition is not installed: apt install tesseract-ocr")

    with closing(ConvertingProcess(2 * 1024**3, "auto")) as reader:
        found = reader.convert(built.read_bytes(), built.name)
        attached = [reader.convert(each.data, each.name) for each in found.attachments]

    text = "".join(" ".join(each.text for each in (found, *attached)).split())
    for block in script["parse"]((SAMPLES / "sources" / f"{source}.txt").read_text(encoding="utf-8")):
        # Recognition may join words.
        assert all("".join(cell.split()) in text for row in block.rows for cell in row)
    assert built.stat().st_size < 80_000
    assert len(found.recognized) == (built.suffix == ".pdf")
    assert all(page.confidence > LEAST_CONFIDENCE for page in found.recognized)


def test_everybody_sees_the_files_of_more_formats() -> None:
    policy = read_policy(SAMPLES / "access.json")
    documents = [path for path in MORE.iterdir() if not path.name.endswith(SIDECAR)]

    assert len(documents) == 3
    for path in documents:
        sidecar = path.with_name(f"{path.name}{SIDECAR}").read_bytes()
        assert {"corpus", "version", "topic"} <= read_sidecar(sidecar, S3_VECTORS).keys()
        for key in (f"samples/{MORE.name}/{path.name}", f"{MORE.name}/{path.name}"):
            assert policy.label_of(key, None) == policy.label_of(f"{attachments_of(key)}a.pdf", None) == "handbook"


def test_the_expected_documents_answer_each_question() -> None:
    for question in questions():
        assert 1 <= len(question["expected"]) <= question["within"], question["id"]
        for name in question["expected"]:
            assert question["answer"] in texts()[name], question["id"]


def test_the_filter_of_a_question_passes_its_documents_only() -> None:
    """It passes all expected documents, but not the whole corpus."""
    for question in questions():
        if "filter" in question:
            condition = parse(question["filter"])
            passing = {name for name in names_of_documents() if evaluate(condition, attributes_of(name))}

            assert to_bedrock(condition)
            assert set(question["expected"]) <= passing < set(names_of_documents()), question["id"]


def test_the_judged_data_set_has_the_sections_of_the_documents() -> None:
    script = runpy.run_path(str(SAMPLES / "build.py"))

    assert (SAMPLES / script["CORPUS"]).read_bytes() == script["build_corpus"]()


def test_the_filter_of_a_judged_question_passes_what_answers_it() -> None:
    data = dataset.read(SAMPLES / "judged")

    for query in data.queries:
        for document, grade in data.judgments[query.id].items():
            assert grade in (1, 2)
            assert query.attributes.items() <= data.documents[document].metadata.items()


def test_the_judged_sections_contain_the_words_of_the_answers() -> None:
    data = dataset.read(SAMPLES / "judged")

    for query in data.queries:
        relevant = [document for document, grade in data.judgments[query.id].items() if grade > 0]
        text = " ".join(data.documents[document].markdown for document in relevant)

        assert token_recall(text, query.answers) == 1, query.id
    assert len(data.unanswerable) >= 15


def test_the_samples_have_their_labels_as_the_readme_uploads_them_too() -> None:
    """`ragstack ingest samples/documents` gives them keys that begin with the name of the folder."""
    policy = read_policy(SAMPLES / "access.json")

    for name in names_of_documents():
        wanted = attributes_of(name).get("access")
        label = policy.label_of(f"{KEYS}{name}", wanted)
        assert label is not None
        assert policy.label_of(f"{DOCUMENTS.name}/{name}", wanted) == label
        assert policy.rule_for(f"{DOCUMENTS.name}/{name}")[1] == policy.rule_for(f"{KEYS}{name}")[1]


def test_each_sample_document_is_visible_and_no_group_sees_all() -> None:
    policy = read_policy(SAMPLES / "access.json")
    rules = AccessRules(policy)
    groups = {name: Caller(name, frozenset({"everyone", name})) for name in policy.principals}
    readers = [caller for name, caller in groups.items() if name != "group:operators"]

    seen = {
        name: {
            reader.name
            for reader in readers
            if rules.sees(reader, policy.label_of(f"{KEYS}{name}", attributes_of(name).get("access")))
        }
        for name in names_of_documents()
    }

    assert groups.keys() == {"group:people", "group:engineering", "group:sales", "group:operators"}
    assert all(seen.values()), seen
    assert set().union(*seen.values()) == {reader.name for reader in readers}
    assert not set.intersection(*seen.values())
    assert rules.sees_everything(groups["group:operators"])
    assert {right for reader in readers for right in rules.rights(reader)} == {Right.READ, Right.WRITE}


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_near_misses_ask_about_the_sections_of_the_handbook(half: str) -> None:
    data = dataset.read(SAMPLES / "near_misses" / half)

    assert len(data.unanswerable) == 24
    assert data.digest == dataset.read(SAMPLES / "judged").digest
    for query in data.queries:
        texts = " ".join(data.documents[document].text for document in data.relevant(query))
        assert all(has_reference(texts, [answer]) for answer in query.answers), query.text
