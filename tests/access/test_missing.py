"""What a question names and no searchable document has: said only if it is so, and only of what the caller sees."""

import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.errors import RegistryError
from ragstack_common.registry.directory import Directory, DirectoryWriter
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.services.missing import MissingValues
from tests.access.world import SNAPSHOT, Document, World, deployed, user
from tests.support.registry_table import TABLE

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": [], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={"": {"default": "public", "labels": ["public", "board"]}},
)
READER, BOARD, OPERATOR = user("rita"), user("ben", "board"), user("olga", "operators")


def contract(name: str, customer: Any, year: Any, status: Status = Status.INDEXED, **more: Any) -> Document:
    label = more.pop("label", "public")
    attributes = {"customer": customer, "year": year, **more}
    return Document(f"legal/{name}.pdf", label, f"{customer} pays within 30 days.", attributes, status)


DOCUMENTS = [
    contract("contract-northwind-2024", "Northwind", 2024, Status.FAILED),
    contract("contract-northwind-2025", "Northwind", 2025, region="EMEA"),
    contract("contract-northwind-2026", "Northwind", 2026, region="APAC", level=3),
    contract("contract-dingo-2024", "Dingo Foods", 2024, region="EMEA"),
    contract("contract-dingo-2025", "Dingo Foods", 2025, region="APAC"),
    contract("contract-initech-2025", "Initech", 2025, Status.WAITING, level=7, effective="2025-03-01"),
    contract("contract-hooli-2024", "Hooli", 2024, Status.FAILED, label="board"),
    contract("contract-hooli-2025", "Hooli", 2025, label="public"),
    contract("contract-hooli-2026", "Hooli", 2026, label="public"),
    contract("contract-umbrella-2024", "Umbrella", 2024, Status.DELETED),
    contract("vertrag", "北風商事", 2024, Status.FAILED),
    contract("vertrag-2025", "北風商事", 2025),
    contract("dogovor", "Ромашка", 2024, Status.FAILED),
    contract("dogovor-2025", "Ромашка", 2025),
    contract("supplier", "Globex", 2026),
    contract("both", "Contoso", 2024, Status.FAILED, supplier="Contoso"),
    contract("globex", "Dingo Foods", 2026, supplier="Globex"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with deployed(tmp_path_factory.mktemp("missing"), POLICY, DOCUMENTS) as made:
        yield made


@pytest.fixture(scope="module")
def missing(world: World) -> Callable[..., Any]:
    def of(question: str, caller: Any = READER, **options: Any) -> Any:
        status, answer = world.call(caller, "POST", "/api/retrieve", {"query": question, **options})
        assert status == 200, answer
        return answer["missing"]

    return of


def test_a_combination_that_only_a_failed_document_has_is_missing_with_the_reason(missing: Callable[..., Any]) -> None:
    found = missing("What are the payment terms of Northwind in 2024?")

    assert found["attributes"] == [{"key": "customer", "value": "Northwind"}, {"key": "year", "value": 2024}]
    assert [(each["key"], each["name"], each["status"]) for each in found["documents"]] == [
        ("legal/contract-northwind-2024.pdf", "contract-northwind-2024.pdf", "FAILED")
    ]
    assert found["text"] == (
        "No searchable document has customer Northwind and year 2024. contract-northwind-2024.pdf failed: the knowledge"
        " base gave no reason."
    )


def test_the_answer_and_its_stream_say_the_same(world: World) -> None:
    body = {"question": "What are the payment terms of Northwind in 2024?"}

    answer = world.post(READER, "/api/ask", body)[1]
    events = world.post(READER, "/api/ask/stream", body)[1]

    assert answer["missing"]["documents"][0]["name"] == "contract-northwind-2024.pdf"
    assert [dict(events)[name]["missing"] for name in ("sources", "done")] == [answer["missing"]] * 2


@pytest.mark.parametrize(
    ("question", "values", "names"),
    [
        ("When does Initech pay?", ["Initech"], ["contract-initech-2025.pdf"]),
        ("Initech's terms in 2025", ["Initech", 2025], ["contract-initech-2025.pdf"]),
        ("北風商事の2024年の契約は?", ["北風商事", 2024], ["vertrag.pdf"]),
        ("Условия для Ромашка в 2024?", ["Ромашка", 2024], ["dogovor.pdf"]),
        ("What is the contract with level 7?", [7], ["contract-initech-2025.pdf"]),
        ("What became effective on 2025-03-01?", ["2025-03-01"], ["contract-initech-2025.pdf"]),
        ("How did Northwind's terms change from 2024 to 2025?", ["Northwind", 2024], ["contract-northwind-2024.pdf"]),
        ("Compare Northwind and Dingo Foods in 2024", ["Northwind", 2024], ["contract-northwind-2024.pdf"]),
        ("What did Contoso agree to in 2024?", ["Contoso", 2024], ["both.pdf"]),
        ("What does Dingo Foods pay in EMEA in 2025?", None, []),
    ],
)
def test_values_of_any_kind_are_recognized(
    missing: Callable[..., Any], question: str, values: list[Any] | None, names: list[str]
) -> None:
    found = missing(question)

    if values is None:
        assert found is None or not found["documents"]
    else:
        assert [each["value"] for each in found["attributes"]] == values
        assert [each["name"] for each in found["documents"]] == names


@pytest.mark.parametrize(
    "question",
    [
        "What are the payment terms of Northwind in 2025?",
        "What are the payment terms of Northwind?",
        "What are the payment terms of Dingo Foods in 2024?",
        "What happened in 2024?",
        "Which customers other than Northwind had a contract in 2024?",
        "Which contracts of 2024 are not with Northwind?",
        "Welche Verträge von 2024 sind nicht mit Northwind?",
        "What did northwind sign in 2023?",
        "How many days of leave are there?",
        "Umbrella 2024",
        "What does level 3 mean?",
        "Is it 7?",
        "What changed since 2024 for Northwind?",
        "Globex in 2026",
        "Who supplied Globex in 2026?",
        "Northwind 2024 " * 80,
    ],
)
def test_nothing_is_said_of_what_a_searchable_document_has_or_a_question_does_not_ask(
    missing: Callable[..., Any], question: str
) -> None:
    assert missing(question) is None


def test_hidden_documents_are_neither_named_nor_counted(missing: Callable[..., Any]) -> None:
    asked = "What are Hooli's terms in 2024?"

    assert missing(asked) is None or not missing(asked)["documents"]
    for caller in (BOARD, OPERATOR):
        assert [each["name"] for each in missing(asked, caller)["documents"]] == ["contract-hooli-2024.pdf"]


def test_a_document_that_is_indexed_again_is_not_missing(tmp_path: Path) -> None:
    """Searches find the version before until then."""
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:
        uri = DOCUMENTS[1].uri
        before = world.registry.read([uri])[uri]
        after = DocumentRecord(
            uri,
            status=Status.INDEXING,
            label="public",
            observed=Observation('"n"', attributes={"customer": "Northwind", "year": 2031, "access": "public"}),
            counted=before.counted,
        )
        assert not world.registry.write([RecordChange(before, after)])

        answer = world.call(READER, "POST", "/api/retrieve", {"query": "Northwind in 2025"})[1]

        assert answer["missing"] is None


def test_what_was_indexed_since_is_not_missing_and_what_failed_since_is(tmp_path: Path) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:

        def ask(question: str) -> Any:
            return world.call(READER, "POST", "/api/retrieve", {"query": question})[1]["missing"]

        assert ask("Northwind in 2024") is not None
        world.relabel("legal/contract-northwind-2024.pdf", "public", Status.INDEXED)
        world.relabel("legal/contract-dingo-2024.pdf", "public", Status.FAILED)

        assert ask("Northwind in 2024") is None
        # The index still has it: the registry alone is no proof.
        assert ask("Dingo Foods in 2024") is None


def test_without_a_directory_nothing_is_said(tmp_path: Path) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:
        world.s3.delete_object(Bucket=SNAPSHOT, Key="documents.gz")

        answer = world.call(READER, "POST", "/api/retrieve", {"query": "Northwind in 2024"})[1]

        assert answer["missing"] is None
        assert answer["results"]


def test_a_registry_that_refuses_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeout is not: the first search of a process often ends before the directory is read."""
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:
        for error, messages in ((TimeoutError(), 0), (RegistryError("AccessDenied"), 1)):
            monkeypatch.setattr(MissingValues, "claim", Mock(side_effect=error))

            answer = world.call(READER, "POST", "/api/retrieve", {"query": "Northwind in 2024"})[1]

            assert answer["results"]
            assert caplog.text.count("whether documents are missing is unknown") == messages


def test_searches_and_names_do_without_a_damaged_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:
        world.s3.put_object(Bucket=SNAPSHOT, Key="documents.gz", Body=b"damaged")

        answer = world.call(READER, "POST", "/api/retrieve", {"query": "Northwind in 2024"})[1]
        found = world.call(READER, "GET", "/api/documents/find", query="northwind 2025")[1]

        assert answer["missing"] is None
        assert answer["results"]
        assert [each["name"] for each in found["documents"]] == ["contract-northwind-2025.pdf"]
        assert "the directory of documents is damaged" in caplog.text


def test_values_of_an_object_that_was_replaced_are_forgotten(tmp_path: Path) -> None:
    """An ingestion replaces it every other minute, and a process that serves questions lives for hours."""
    with deployed(tmp_path, POLICY, DOCUMENTS) as world:
        directory = Directory(world.dynamodb, TABLE, world.s3, SNAPSHOT)
        writer = DirectoryWriter(
            world.dynamodb, TABLE, world.s3, SNAPSHOT, world.registry.scan, world.registry.read, ("access",)
        )
        minutes = itertools.count(0, 60)
        missing = MissingValues(directory, world.registry, Guard(), lambda: float(next(minutes)))

        def asked() -> Callable[[], Any]:
            assert missing.claim("Northwind in 2024", READER) is not None
            entries = directory.read()
            assert entries is not None
            return weakref.ref(entries.values)

        before = asked()
        world.relabel("legal/contract-dingo-2025.pdf", "board")
        writer.write()
        now = asked()
        gc.collect()

        assert before() is None
        assert now() is not None
