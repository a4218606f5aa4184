"""The options of `ragstack up`."""

from dataclasses import replace
from pathlib import Path

import pytest

from ragstack_common.access_config import AuthKind
from ragstack_local.commands.stack import _callers, _options, _start_again
from ragstack_local.errors import StackError
from ragstack_local.search_options import SettingsOptions
from ragstack_local.stack.local_stack import StackOptions
from ragstack_local.target.connection import Project


def test_the_command_to_start_again_has_the_ports_and_folder(tmp_path: Path) -> None:
    project = Project.find()
    own = _options(project, (4566, 5567, 4568, 4569, 4580), tmp_path / "my data", "hashed", None, SettingsOptions(), [])
    default = _options(project, (4566, 4567, 4568, 4569, 4580), None, "hashed", None, SettingsOptions(), [])

    assert _start_again(project, own).endswith(f"up --bedrock-port 5567 --data-dir '{tmp_path}/my data'")
    assert _start_again(project, default).endswith("ragstack up")
    people = replace(default, **_callers(project, "none,oidc", None))
    assert _start_again(project, people).endswith("up --auth none,oidc")
    tenants = replace(people, access=tmp_path / "access.json", context={"tenants": "index"})
    assert _start_again(project, tenants).endswith(f"--access {tmp_path}/access.json --tenants index")
    assert people.chosen["access"] == str(project.root / "samples" / "access.json")
    assert people.chosen["oidc_issuer"] == "http://127.0.0.1:4569"


def test_tenants_come_from_the_access_file(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    file.write_text('{"tenants": {"acme": {"prefix": "tenants/acme/"}}}')
    options = StackOptions(tmp_path, access=file, auth=(AuthKind.OIDC,), context={"tenants": "index"})

    assert options.tenant_prefixes == {"acme": "tenants/acme/"}
    assert replace(options, context={}).tenant_prefixes == {}
    assert replace(options, auth=(), context={"tenants": "index", "access": str(file)}).tenant_prefixes
    file.write_text("{}")
    with pytest.raises(StackError, match="needs an access file with tenants"):
        _ = options.tenant_prefixes


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ([], None),
        (["--llm-url", "http://127.0.0.1:11434/v1"], "local.model"),
        (
            ["--llm-url", "http://127.0.0.1:11434/v1", "--llm-model", "hf.co/some/llama3.2:3b"],
            "local.hf.co-some-llama3.2:3b",
        ),
    ],
    ids=["none", "the server's first", "named"],
)
def test_a_model_of_the_local_bedrock_writes_the_answers_too(
    tmp_path: Path, arguments: list[str], model: str | None
) -> None:
    project = Project.find()

    options = _options(project, (1, 2, 3, 4, 5), tmp_path, "hashed", None, SettingsOptions(), arguments)
    chosen = _options(project, (1, 2, 3, 4, 5), tmp_path, "hashed", ["answer_model=own"], SettingsOptions(), arguments)

    assert options.context.get("answer_model") == model
    assert chosen.context["answer_model"] == "own"
