"""Where a stack is: the running local one, or one deployed to AWS."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection, Project, local_environment
from ragstack_local.errors import StackError
from tests.ragstack_local.support import OUTPUTS, aws, deploy, running_stack, stack_at
from tests.support.children import END_SECONDS, child


@pytest.fixture
def cloudformation(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    client = aws("cloudformation", moto_url)
    yield client
    for stack in client.list_stacks(StackStatusFilter=["CREATE_COMPLETE"])["StackSummaries"]:
        client.delete_stack(StackName=stack["StackName"])


def test_a_deployment_is_read_from_the_outputs() -> None:
    connection = Connection.from_outputs(OUTPUTS, "RagStack")

    assert connection == Connection(
        api_url="https://api/prod",
        bucket="documents",
        knowledge_base_id="ABCDEFGHIJ",
        data_source_id="KLMNOPQRST",
        queue_url="https://sqs/events",
        dead_letter_queue_url="https://sqs/dead",
        status_queue_url="https://sqs/status",
        conversion_queue_url="https://sqs/conversions",
        large_conversion_queue_url="https://sqs/large",
        receipts_queue_url="https://sqs/receipts",
        jobs_queue_url="https://sqs/jobs",
        registry_table="registry",
    )
    assert connection.vector_store == "OTHER"
    assert not connection.is_local


@pytest.mark.parametrize(
    ("more", "programs", "people"),
    [
        ({}, "https://api/prod", None),
        ({"OidcIssuer": "https://issuer"}, "https://api/prod", "https://api/prod"),
        ({"OidcIssuer": "https://issuer", "PeopleApiUrl": "https://p/prod/"}, "https://api/prod", "https://p/prod"),
        ({"OidcIssuer": "https://issuer", "ProgramsApiUrl": "https://q/prod/"}, "https://q/prod", "https://api/prod"),
    ],
)
def test_programs_and_people_may_have_apis_of_their_own(
    more: dict[str, str], programs: str, people: str | None
) -> None:
    outputs = {**OUTPUTS, "RagStackApi": {**OUTPUTS["RagStackApi"], **more}}

    connection = Connection.from_outputs(outputs, "RagStack")

    assert (connection.api_url, connection.people_url) == (programs, people)
    assert connection.variables.get("PEOPLE_API") == people
    assert connection.variables.get("OIDC_ISSUER") == more.get("OidcIssuer")


@pytest.mark.parametrize(("stack", "output"), [("RagStackStorage", "RegistryTableName"), ("RagStackApi", "ApiUrl")])
def test_an_output_that_is_missing_is_named(stack: str, output: str) -> None:
    outputs = {name: {k: v for k, v in values.items() if k != output} for name, values in OUTPUTS.items()}

    with pytest.raises(StackError, match=f"The stacks RagStack.* have no output '{output}': deploy them again"):
        Connection.from_outputs(outputs, "RagStack")


def test_a_deployed_stack_is_found_through_cloudformation(cloudformation: Any) -> None:
    deploy(cloudformation, OUTPUTS)

    found = Connection.from_deployed_stack()

    expected = Connection.from_outputs(OUTPUTS, "RagStack", deployed_to=found.deployed_to)
    endpoint = cloudformation.meta.endpoint_url
    assert found == expected
    assert found.described == f"Stack: RagStack on AWS, Region us-east-1, account 123456789012, at {endpoint}"


def test_a_stack_that_is_not_deployed_is_named(cloudformation: Any) -> None:
    deploy(cloudformation, {"RagStackStorage": OUTPUTS["RagStackStorage"]})

    with pytest.raises(StackError, match="There is no stack RagStackIngestion in this account and region"):
        Connection.from_deployed_stack()


def test_a_running_stack_is_read_from_its_file(tmp_path: Path) -> None:
    connection = stack_at(process_id=os.getpid(), data=str(tmp_path))

    with running_stack(tmp_path, connection):
        found = Connection.from_running_stack(tmp_path / "running.json")

    assert found == connection
    assert found.is_local


def test_a_stack_that_is_still_starting_is_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "running.json"

    with running.announcing(file, tmp_path), pytest.raises(StackError, match="is still starting"):
        Connection.from_running_stack(file)


@pytest.mark.parametrize(
    "content",
    [None, "", "{", "[]", json.dumps({"process_id": os.getpid()})],
    ids=["no file", "empty", "broken", "no object", "a living process"],
)
def test_an_unlocked_file_means_that_no_stack_is_running(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "running.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(StackError, match="No local stack is running: start one with `ragstack up`"):
        Connection.from_running_stack(file)


def test_a_killed_stack_is_gone_even_if_its_process_id_is_reused(tmp_path: Path) -> None:
    file = tmp_path / "running.json"
    code = (
        "import sys, time, pathlib\n"
        "from ragstack_local.connection import running\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "with running.announcing(file, file.parent) as announce:\n"
        f"    announce({{'process_id': {os.getpid()}}})\n"
        "    print('up', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with child([sys.executable, "-c", code, file], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        held = running.read(file)
        holder.kill()
        holder.wait(END_SECONDS)

    assert held == {"process_id": os.getpid(), "data": str(tmp_path)}
    assert json.loads(file.read_text())["process_id"] == os.getpid()
    assert running.read(file) is None


def test_a_reader_does_not_keep_a_stack_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "running.json"
    file.touch()

    with file.open() as read:
        fcntl.flock(read, fcntl.LOCK_SH)
        ending = threading.Timer(0.1, fcntl.flock, (read, fcntl.LOCK_UN))
        ending.start()
        with running.announcing(file, tmp_path):
            held = running.read(file)
        ending.join()

    assert held == {"process_id": os.getpid(), "data": str(tmp_path)}


def test_a_second_stack_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    file = tmp_path / "running.json"

    with running_stack(tmp_path, stack_at()):
        with pytest.raises(StackError, match="running already"), running.announcing(file, tmp_path):
            pass
        assert Connection.from_running_stack(file).bucket == "documents"


@pytest.mark.parametrize("next_command", ["down", "up"])
def test_the_temporary_files_of_a_killed_stack_are_removed(tmp_path: Path, next_command: str) -> None:
    file, data = tmp_path / "running.json", tmp_path / "data"
    temporary = data / running.TEMPORARY
    (temporary / "function").mkdir(parents=True)
    (temporary / "function" / "handler.py").write_text("")
    (data / running.IN_USE).touch()
    file.write_text(json.dumps({"process_id": 1, "data": str(data)}))

    if next_command == "down":
        assert running.clean_up(file)
    else:
        with running.announcing(file, data):
            pass

    assert not temporary.exists()
    assert data.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 99_999, b"\0" * 9], ids=["no text", "deep", "zeros"])
def test_a_damaged_record_ends_neither_command(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "running.json"
    file.write_bytes(content)

    assert running.was_killed(file)
    assert running.clean_up(file)
    file.write_bytes(content)
    with running.announcing(file, tmp_path):
        assert running.read_data_folder(file) == tmp_path


@pytest.mark.parametrize("next_command", ["down", "up"])
@pytest.mark.parametrize("name", ["data", "temporary", "logs"])
def test_a_record_cannot_have_a_strange_folder_removed(tmp_path: Path, name: str, next_command: str) -> None:
    file, strange = tmp_path / "running.json", tmp_path / "strange"
    for folder in (strange, strange / running.TEMPORARY, strange / running.LOGS):
        folder.mkdir()
        (folder / "kept.pid").write_text(f"{os.getpid()} kept")
    before = sorted(strange.rglob("*"))
    file.write_text(json.dumps({"process_id": 1, name: str(strange)}))

    if next_command == "down":
        running.clean_up(file)
    else:
        with running.announcing(file, tmp_path / "own"):
            pass

    assert sorted(strange.rglob("*")) == before


def test_a_linked_folder_of_temporary_files_is_not_followed(tmp_path: Path) -> None:
    file, data, elsewhere = tmp_path / "running.json", tmp_path / "data", tmp_path / "elsewhere"
    for folder in (data, elsewhere):
        folder.mkdir()
        (folder / running.IN_USE).touch()
    (data / running.TEMPORARY).symlink_to(elsewhere)
    file.write_text(json.dumps({"process_id": 1, "data": str(data)}))

    running.clean_up(file)

    assert (elsewhere / running.IN_USE).exists()


@pytest.mark.parametrize("content", ["[]", '"text"', "{}", '{"process_id": "1", "data": 7}', '{"data": "."}', "\x00"])
def test_a_record_of_another_form_is_ignored(tmp_path: Path, content: str) -> None:
    file = tmp_path / "running.json"
    file.write_text(content)

    with file.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        found = running.read(file)

    assert found == {}
    assert running.clean_up(file)


def test_local_clients_know_nothing_of_the_users_settings(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "nobody")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-south-2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    for service in ("s3", "sqs", "bedrock-agent"):
        assert connection.client(service).meta.region_name == "us-east-1"
    connection.client("s3").head_bucket(Bucket=connection.bucket)
    connection.client("bedrock-agent").get_knowledge_base(knowledgeBaseId=connection.knowledge_base_id)


def test_a_local_process_gets_no_settings_of_aws_and_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    monkeypatch.setenv("SEARCH_K", "3")  # functions have the settings of their deployment

    env = local_environment("http://127.0.0.1:1", EXTRA="1")

    assert "AWS_SESSION_TOKEN" not in env
    assert "AWS_PROFILE" not in env
    assert "SEARCH_K" not in env
    assert env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert env["NO_PROXY"] == env["no_proxy"] == "intranet.example,127.0.0.1"
    assert env["EXTRA"] == "1"


def test_the_data_folder_is_in_the_project_or_set_by_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Project.find().data == Project.find().root / ".ragstack"

    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path))

    assert Project.find().running == tmp_path / "running.json"
