"""The files .env in the current folder: every command reads them, trusts them little, and says what they set."""

import os
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.connection import environment
from ragstack_local.connection.address import Address
from ragstack_local.errors import ApiError
from tests.ragstack_local.support import NOWHERE, Api, ragstack, running_stack, stack_at

ROOT = Path(__file__).parents[2]
CHEATSHEET = """\
# where the collection is
CHROMA_PERSIST_DIRECTORY=./chroma
CHROMA_COLLECTION_NAME="from file"
RAGSTACK_TOKEN=secret
DATABASE_PASSWORD=secret
"""
OTHER_HOST = "http://search.example:8000"
LISTED = {"corpora": [], "complete": True}


def test_build_writes_where_the_file_says(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(CHEATSHEET)
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook/leave.md").write_text("Employees have thirty days of leave.")

    built = ragstack("build", "handbook", "--verbose", data=tmp_path, CHROMA_COLLECTION_NAME="blert")

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "chroma/manifests/blert.txt").is_file()
    assert built.stderr == (
        f"{tmp_path}/.env sets CHROMA_PERSIST_DIRECTORY; a file cannot set RAGSTACK_TOKEN\n"
        f"There is no {tmp_path}/.env.local\n"
        f"{tmp_path}/.env: the environment has precedence for CHROMA_COLLECTION_NAME\n"
    )


@pytest.mark.parametrize(
    "variable", ["BROWSER", "LD_PRELOAD", "PATH", "NODE_OPTIONS", "RAGSTACK_DATA", "RAGSTACK_ENV", "AWS_ENDPOINT_URL"]
)
def test_a_file_sets_only_the_documented_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    (tmp_path / ".env").write_text(f"{variable}=/evil\nSEARCH_K=3\n")
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ):
        read = environment.read_files()

        assert os.environ.get(variable) != "/evil"
        assert os.environ["SEARCH_K"] == "3"
    assert read.lines[0].startswith(f"{tmp_path}/.env sets SEARCH_K")


def test_a_value_does_not_take_other_variables_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("RAGSTACK_API_URL=https://evil.example/${RAGSTACK_TOKEN}\n")
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ, {"RAGSTACK_TOKEN": "secret"}):
        environment.read_files()

        assert os.environ["RAGSTACK_API_URL"] == "https://evil.example/${RAGSTACK_TOKEN}"


def test_the_environment_has_precedence_over_the_named_file_and_that_over_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for suffix, value in (("", 1), (".local", 2), (".production", 3), (".example", 9), (".staging", 9)):
        (tmp_path / f".env{suffix}").write_text(f"SEARCH_K={value}\nPOOLING=mean\nCHUNK_SIZE={value}00\n")
    (tmp_path / ".env").write_text("SEARCH_K=1\nCHUNK_OVERLAP=50\n")
    monkeypatch.chdir(tmp_path)
    found = []
    for given in ({}, {"RAGSTACK_ENV": "production"}, {"RAGSTACK_ENV": "production", "SEARCH_K": "4"}):
        with patch.dict(os.environ, given):
            lines = environment.read_files().lines
            found.append(
                (os.environ["SEARCH_K"], os.environ["CHUNK_OVERLAP"], any("not read" in line for line in lines))
            )

    assert found == [("2", "50", True), ("3", "50", False), ("4", "50", False)]


@pytest.mark.parametrize("name", ["production", "../up", "a/b"])
def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path, name: str) -> None:
    done = ragstack("down", data=tmp_path, RAGSTACK_ENV=name)

    assert done.returncode == 3
    assert f"RAGSTACK_ENV={name} names " in done.stderr


@pytest.mark.parametrize(
    "given", [{"RAGSTACK_TOKEN": "secret"}, {"RAGSTACK_API_KEY": "secret"}, {"AWS_ACCESS_KEY_ID": "secret"}]
)
def test_no_credential_is_sent_to_an_address_from_a_file(tmp_path: Path, api: Api, given: dict[str, str]) -> None:
    (tmp_path / ".env").write_text(f"RAGSTACK_API_URL={api.url}\n")
    api.will_answer(200, LISTED)

    listed = ragstack("corpora", "--json", data=tmp_path, AWS_SECRET_ACCESS_KEY="secret", **given)

    assert listed.returncode == 0, listed.stderr
    (request,) = api.requests
    assert "secret" not in str(request)
    assert not {"authorization", "x-api-key"} & {name.lower() for name in request["headers"]}
    assert listed.stderr.count("\n") == 2
    assert f"{tmp_path}/.env sets RAGSTACK_API_URL" in listed.stderr
    assert "It gets no key, token, login or signature: confirm it with --api-url" in listed.stderr


@pytest.mark.parametrize("is_option", [True, False])
def test_an_address_that_the_user_names_too_gets_the_credential(tmp_path: Path, api: Api, *, is_option: bool) -> None:
    (tmp_path / ".env").write_text(f"RAGSTACK_API_URL={api.url}\n")
    api.will_answer(200, LISTED)
    option, variable = (["--api-url", api.url], {}) if is_option else ([], {"RAGSTACK_API_URL": api.url})

    ragstack("corpora", *option, data=tmp_path, RAGSTACK_TOKEN="secret", **variable)

    assert [request["headers"]["Authorization"] for request in api.requests] == ["Bearer secret"]


def test_signing_in_to_an_address_from_a_file_needs_a_confirmation(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("RAGSTACK_API_URL=https://evil.example/prod\n")

    done = ragstack("login", "--client-id", "ragstack", data=tmp_path)

    assert done.returncode == 2
    assert f"https://evil.example/prod is named by {tmp_path}/.env: confirm it" in done.stderr


@pytest.mark.parametrize(
    ("address", "url", "message"),
    [
        (Address(NOWHERE, file=Path("/x/.env")), "https://evil.example/bucket", "/x/.env names the API, so no file is"),
        (Address("https://evil.example", file=Path("/x/.env")), NOWHERE, "/x/.env names the API, so no file is sent"),
        (Address("https://search.example"), "http://bucket.example", "names http://bucket.example for uploads, which"),
    ],
)
async def test_no_file_leaves_this_machine_for_an_unconfirmed_address_or_unencrypted(
    address: Address, url: str, message: str
) -> None:
    with pytest.raises(ApiError, match=message):
        await HttpOperations(lambda: address).upload(url, {}, "notes.md", b"secret plan")


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("RAGSTACK_LLM_URL=https://evil.example/v1", "RAGSTACK_LLM_API_KEY"),
        ("RAGSTACK_EMBEDDING=openai:https://evil.example/v1#m", "RAGSTACK_EMBEDDING_API_KEY"),
        ("EMBEDDING_MODEL=openai:https://evil.example/v1#m", "RAGSTACK_EMBEDDING_API_KEY"),
    ],
)
def test_keys_of_servers_are_withheld_if_a_file_names_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, key: str
) -> None:
    (tmp_path / ".env").write_text(setting)
    monkeypatch.chdir(tmp_path)
    variable, _, value = setting.partition("=")
    monkeypatch.delenv(variable, raising=False)
    for given, is_kept in (({}, False), ({variable: value}, True)):
        with patch.dict(os.environ, {key: "secret", **given}):
            lines = environment.read_files().lines

            assert (key in os.environ) == is_kept
        assert any(line.startswith(f"{key} is not used") for line in lines) != is_kept


def test_a_record_of_a_stack_elsewhere_is_not_used(tmp_path: Path) -> None:
    with running_stack(tmp_path, stack_at(api_url=OTHER_HOST)):
        done = ragstack("corpora", data=tmp_path, RAGSTACK_TOKEN="secret")

    assert done.returncode == 3
    assert f"{tmp_path}/running.json names {OTHER_HOST}, and no local stack is there" in done.stderr


def test_processes_do_not_import_from_the_current_folder() -> None:
    """With ``python -m``, a package of the current folder would replace one of the installation, unless with -P."""
    folders = ("evaluation", "local_bedrock", "ragstack_common", "ragstack_local")
    sources = {path: path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py")}

    started = {path.name: re.findall(r'sys\.executable, ("-P", )?"-m"', text) for path, text in sources.items()}

    assert {"adding.py", "index.py", "local_stack.py"} <= {name for name, found in started.items() if found}
    assert not [name for name, found in started.items() if "" in found]


def test_verbose_reports_a_missing_file(tmp_path: Path) -> None:
    assert f"There is no {tmp_path}/.env\n" in ragstack("down", "--verbose", data=tmp_path).stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", b"NAME=a\0b"], ids=["encoding", "null"])
def test_an_unreadable_file_is_an_error_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)

    done = ragstack("down", data=tmp_path)

    assert done.returncode == 3
    assert done.stderr.startswith(f"Error: {tmp_path}/.env cannot be read: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", [b"RAGSTACK_LLM_MODEL=caf\xe9", b"NAME=a\0b"], ids=["encoding", "null"])
def test_a_file_that_is_not_read_breaks_no_command(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env.production").write_bytes(content)
    (tmp_path / ".env.staging").write_text("RAGSTACK_LLM_MODEL=qwen3\n")

    done = ragstack("down", data=tmp_path)
    named = ragstack("down", data=tmp_path, RAGSTACK_ENV="production")

    assert "Error: No local stack is running" in done.stderr
    assert f"{tmp_path}/.env.staging is not read" in done.stderr
    assert named.stderr.startswith(f"Error: {tmp_path}/.env.production cannot be read: ")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="reads a file whose reading fails, also for root")
def test_a_file_whose_reading_fails_is_an_error_only_if_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / ".env.production").symlink_to("/proc/self/mem")
    unneeded = ragstack("down", data=tmp_path)
    (tmp_path / ".env").symlink_to("/proc/self/mem")
    needed = ragstack("down", data=tmp_path)

    assert unneeded.stderr.endswith("Error: No local stack is running\n")
    assert needed.stderr.startswith(f"Error: {tmp_path}/.env cannot be read: ")
    assert needed.stderr.count("\n") == 1
