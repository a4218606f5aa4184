"""`ragstack delete`."""

import json
from dataclasses import replace

import pytest

from ragstack_common.core.errors import DocumentNotFoundError
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local import connection_options
from ragstack_local.files.documents import ApiDocuments
from tests.ragstack_common.services.conftest import BUCKET, Aws
from tests.ragstack_local.commands.conftest import Run
from tests.support.registry_table import TABLE

KEYS = ["notes/leave.md", "notes/travel.md", "notesbook.md"]


@pytest.fixture
def handbook(aws: Aws) -> list[str]:
    """The URIs of three indexed documents: two in the folder notes, and two of the corpus people."""
    for key, attributes in zip(KEYS, ({"corpus": "people"}, {}, {"corpus": "people"}), strict=True):
        aws.record(key, Status.INDEXED, replace(aws.put(key), attributes=attributes))
    return [f"s3://{BUCKET}/{key}" for key in KEYS]


@pytest.mark.parametrize(
    ("arguments", "deleted"),
    [
        (["notesbook.md"], [2]),
        (["notes/leave.md", f"s3://{BUCKET}/notesbook.md"], [0, 2]),
        (["notes/"], [0, 1]),
        (["notes"], [0, 1]),
        ([f"s3://{BUCKET}/notes/"], [0, 1]),
        (["--corpus", "people"], [0, 2]),
        (["notes/", "--corpus", "people"], [0]),
    ],
    ids=str,
)
def test_documents_are_deleted_with_their_sidecars(
    aws: Aws, run: Run, handbook: list[str], arguments: list[str], deleted: list[int]
) -> None:
    for key in KEYS:
        aws.put(f"{key}.metadata.json", "{}")

    done = run("delete", *arguments, "--yes", "--json", "--no-wait")

    assert done.exit_code == 0, done.output
    assert [each["uri"] for each in json.loads(done.stdout)["documents"]] == [handbook[number] for number in deleted]
    left = [key for number, key in enumerate(KEYS) if number not in deleted]
    assert aws.keys() == sorted([*left, *(f"{key}.metadata.json" for key in left)])


def test_a_deletion_is_followed_until_no_search_finds_the_document(
    aws: Aws, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))
    registry, polls = DocumentRegistry(TABLE, aws.dynamodb), []
    ask = ApiDocuments._summaries

    def forget(self: ApiDocuments, name: str) -> object:
        polls.append(ask(self, name))
        if len(polls) == 3:
            gone = DocumentRecord(record.uri, status=Status.DELETED)
            assert registry.write([RecordChange(registry.read([record.uri])[record.uri], gone)]) == set()
        return polls[-1]

    monkeypatch.setattr(ApiDocuments, "_summaries", forget)
    done = run("delete", "leave.md")

    assert done.exit_code == 0, done.output
    assert "1 DELETED" in done.output
    assert len(polls) > 3


def test_a_document_that_is_still_found_is_listed(aws: Aws, run: Run) -> None:
    aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))

    done = run("delete", "leave.md", "--timeout", "1")

    assert done.exit_code == 1
    assert "The deletion has not been processed yet" in " ".join(done.output.split())


def test_without_a_terminal_documents_are_shown_and_not_deleted(aws: Aws, run: Run) -> None:
    for number in range(12):
        aws.record(f"notes/{number:02}.md", Status.INDEXED, aws.put(f"notes/{number:02}.md"))

    done = run("delete", "notes/")

    assert done.exit_code == 2
    assert done.stdout.splitlines() == [
        "12 documents will be deleted",
        *(f"  s3://{BUCKET}/notes/{number:02}.md" for number in range(10)),
        "  ... and 2 more",
    ]
    assert "--yes" in done.stderr
    assert len(aws.keys()) == 12


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_on_a_terminal_a_folder_is_deleted_if_the_answer_is_yes(
    aws: Aws, run: Run, handbook: list[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(connection_options, "_is_terminal", lambda: True)

    done = run("delete", "notes/", "--no-wait", input=f"{answer}\n")

    assert done.exit_code == code, done.output
    assert aws.keys() == (["notesbook.md"] if answer == "y" else KEYS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["notesbook.md", "nothing.md"], "Neither the bucket nor the registry has nothing.md"),
        (["drafts/"], "There is no document in the folder drafts/; nothing was deleted"),
        (["s3://elsewhere/notes/"], "There is no document in the folder s3://elsewhere/notes/"),
        (["--corpus", "nobody"], "No such document belongs to the corpus nobody"),
    ],
)
def test_a_missing_document_is_an_error_and_nothing_is_deleted(
    aws: Aws, run: Run, handbook: list[str], arguments: list[str], words: str
) -> None:
    done = run("delete", *arguments, "--yes")

    assert isinstance(done.exception, DocumentNotFoundError)
    assert words in str(done.exception)
    assert aws.keys() == KEYS


def test_a_deletion_of_nothing_is_wrong_usage(run: Run) -> None:
    assert run("delete", "--yes").exit_code == 2


DECOMPOSED = "Vertra\u0308ge/Preis.md"
COMPOSED = "Vertr\u00e4ge/Preis.md"


def test_a_document_is_deleted_by_the_name_that_a_keyboard_writes(aws: Aws, run: Run) -> None:
    aws.record(DECOMPOSED, Status.INDEXED, aws.put(DECOMPOSED))

    done = run("delete", COMPOSED, "--no-wait", "--json")

    assert [each["uri"] for each in json.loads(done.stdout)["documents"]] == [f"s3://{BUCKET}/{DECOMPOSED}"]
    assert aws.keys() == []


def test_a_folder_is_deleted_in_each_form(aws: Aws, run: Run) -> None:
    for key in (DECOMPOSED, COMPOSED):
        aws.record(key, Status.INDEXED, aws.put(key))

    done = run("delete", "Vertr\u00e4ge", "--yes", "--no-wait")

    assert done.exit_code == 0, done.output
    assert aws.keys() == []


def test_of_two_documents_with_one_name_the_id_says_which(aws: Aws, run: Run) -> None:
    ids = {key: aws.record(key, Status.INDEXED, aws.put(key)).id for key in (DECOMPOSED, COMPOSED)}

    ambiguous = run("delete", COMPOSED, "--no-wait")
    shown = json.loads(run("status", COMPOSED, "--json").stdout)

    assert all(identifier in str(ambiguous.exception) for identifier in ids.values())
    assert len(aws.keys()) == 2
    assert {each["id"] for each in shown} == {*ids.values()}
    assert run("delete", ids[DECOMPOSED], "--no-wait").exit_code == 0
    assert aws.keys() == [COMPOSED]
