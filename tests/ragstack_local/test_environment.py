"""The file .env in the current folder: every command reads it, and the environment has precedence."""

from pathlib import Path

import pytest

from tests.ragstack_local.support import Api, ragstack

CHEATSHEET = """\
# where the collection is
CHROMA_PERSIST_DIRECTORY=./chroma
CHROMA_COLLECTION_NAME="from file"
RAGSTACK_TOKEN=secret
"""


def test_build_writes_where_the_file_says(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(CHEATSHEET)
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook/leave.md").write_text("Employees have thirty days of leave.")

    built = ragstack("build", "handbook", "--verbose", data=tmp_path, CHROMA_COLLECTION_NAME="blert")

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "chroma/manifests/blert.txt").is_file()
    assert built.stderr == (
        f"{tmp_path}/.env sets CHROMA_PERSIST_DIRECTORY, RAGSTACK_TOKEN;"
        " the environment has precedence for CHROMA_COLLECTION_NAME\n"
    )


def test_options_take_their_values_from_the_file(tmp_path: Path, api: Api) -> None:
    (tmp_path / ".env").write_text(f"RAGSTACK_API_URL={api.url}\nRAGSTACK_TOKEN=secret\n")
    api.will_answer(200, {"corpora": [], "complete": True})

    listed = ragstack("--verbose", "corpora", "--json", data=tmp_path)

    assert listed.returncode == 0, listed.stderr
    assert [request["headers"]["Authorization"] for request in api.requests] == ["Bearer secret"]
    assert "sets RAGSTACK_API_URL, RAGSTACK_TOKEN" in listed.stderr
    assert "secret" not in listed.stderr


def test_without_a_file_verbose_says_so(tmp_path: Path) -> None:
    assert f"There is no {tmp_path}/.env\n" in ragstack("down", "--verbose", data=tmp_path).stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", b"NAME=a\0b"], ids=["encoding", "null"])
def test_an_unreadable_file_is_an_error_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)

    done = ragstack("down", data=tmp_path)

    assert done.returncode == 3
    assert done.stderr.startswith(f"Error: {tmp_path}/.env cannot be read: ")
    assert done.stderr.count("\n") == 1
