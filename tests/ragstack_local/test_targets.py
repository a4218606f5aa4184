"""Which stack a command uses, and how it says so."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.ragstack_local.support import OUTPUTS, Api, deploy, ragstack, running_stack, stack_at

CORPORA: dict[str, Any] = {"corpora": [], "complete": True}


@pytest.fixture
def local(tmp_path: Path, api: Api) -> Iterator[dict[str, str]]:
    """A running local stack; yields the environment of a user who has run ``eval "$(ragstack env)"``."""
    api.will_answer(200, CORPORA)
    with running_stack(tmp_path, stack_at(api_url=api.url)):
        lines = ragstack("env", data=tmp_path).stdout.splitlines()
        yield dict(shlex.split(line.removeprefix("export "))[0].split("=", 1) for line in lines)


@pytest.fixture
def deployed(moto_url: str, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Stacks on what passes for AWS; yields settings that lead there without environment variables."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    local = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
    client = local.client("cloudformation", endpoint_url=moto_url)
    deploy(client, OUTPUTS | {"RagStackApi": {"ApiUrl": api.url}})
    (tmp_path / "config").write_text(f"[default]\nregion = eu-west-3\nendpoint_url = {moto_url}\n")
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = testing\naws_secret_access_key = testing\n")
    names = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
    yield {name: str(tmp_path / file) for name, file in names.items()}
    for name in OUTPUTS:
        client.delete_stack(StackName=name)


def test_aws_never_means_the_local_stack_of_the_environment(
    tmp_path: Path, local: dict[str, str], deployed: dict[str, str]
) -> None:
    done = ragstack("env", "--aws", data=tmp_path, **local, **deployed)

    # Its Region is that of the user's settings, where nothing is deployed.
    assert done.returncode == 3
    assert "There is no stack RagStackStorage in this account and region" in done.stderr
    assert "Ignored, because they are for a local stack: AWS_ACCESS_KEY_ID, AWS_DEFAULT_REGION, " in done.stderr


def test_aws_without_credentials_names_what_is_missing(tmp_path: Path, local: dict[str, str]) -> None:
    done = ragstack("corpora", "--aws", data=tmp_path, **local)

    assert done.returncode == 3
    assert "Error: --aws needs AWS credentials and a region: " in done.stderr


def test_a_command_names_the_stack_on_aws(tmp_path: Path, deployed: dict[str, str], moto_url: str) -> None:
    done = ragstack("env", "--aws", data=tmp_path, **deployed, AWS_DEFAULT_REGION="us-east-1")

    where = f"Stack: RagStack on AWS, Region us-east-1, account 123456789012, at {moto_url}\n"
    assert (done.returncode, done.stderr) == (0, where)


def test_a_command_names_its_stack_once_and_not_with_json(tmp_path: Path, local: dict[str, str], api: Api) -> None:
    shown = ragstack("corpora", data=tmp_path)
    by_url = ragstack("corpora", "--api-url", api.url, data=tmp_path)
    in_json = ragstack("corpora", "--json", data=tmp_path)

    assert shown.stderr == f"Stack: local, {local['AWS_ENDPOINT_URL']}\n"
    assert by_url.stderr == f"Stack: the API {api.url}\n"
    assert (in_json.stderr, json.loads(in_json.stdout)) == ("", CORPORA)


def test_a_distant_api_is_not_signed_with_local_credentials(tmp_path: Path, local: dict[str, str]) -> None:
    url = "https://abcde12345.execute-api.eu-west-3.amazonaws.com/prod"

    done = ragstack("corpora", "--api-url", url, data=tmp_path, **local)

    assert done.returncode == 3
    assert "The API needs signed requests, and there are no AWS credentials" in done.stderr


def test_variables_of_env_can_be_unset(tmp_path: Path, local: dict[str, str]) -> None:
    own = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_ENDPOINT_URL_S3": "https://s3.example"}

    everything = ragstack("env", "--unset", data=tmp_path, **local)
    mine = ragstack("env", "--unset", data=tmp_path, **own)

    assert set(everything.stdout.split()) == {"unset", *local}
    assert mine.stdout == ""
    assert os.environ.get("API") is None
