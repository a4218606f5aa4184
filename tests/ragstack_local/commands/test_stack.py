"""The options of `ragstack up`."""

from dataclasses import replace
from pathlib import Path

import pytest

from ragstack_common.settings.access import AuthKind, Tenants
from ragstack_local.commands.stack import StartOptions, _callers, _last_callers, _start_again
from ragstack_local.connection.connection import Project
from ragstack_local.errors import StackError
from ragstack_local.stack.last_callers import LastCallers
from ragstack_local.stack.local_stack import StackOptions, local_stack
from tests.ragstack_local.support import ragstack
from tests.support.ports import free_ports


def test_the_command_to_start_again_has_the_ports_and_folder(tmp_path: Path) -> None:
    project = Project.find()
    own = StartOptions(bedrock_port=5567, data_dir=tmp_path / "my data").read(project, [])
    default = StartOptions().read(project, [])

    assert _start_again(project, own).endswith(f"up --bedrock-port 5567 --data-dir '{tmp_path}/my data'")
    assert _start_again(project, default).endswith("ragstack up")
    people = replace(default, **_callers(project, "none,oidc", None))
    assert _start_again(project, people).endswith("ragstack up")
    assert people.chosen["access"] == str(project.root / "samples" / "access.json")
    assert people.chosen["oidc_issuer"] == "http://127.0.0.1:4569"


def test_a_start_keeps_the_callers_of_the_last_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = Project.find()
    demo = _callers(project, "none,oidc", None)
    LastCallers(demo["auth"], None).write(tmp_path)

    again = _callers(project, None, None, None, LastCallers.read(tmp_path))

    assert again == demo
    assert "As at the last start: --auth none,oidc" in capsys.readouterr().out
    assert "auth" not in _callers(project, "none", None, None, LastCallers.read(tmp_path))
    assert "auth" not in _callers(project, None, None, None, LastCallers.read(tmp_path / "empty"))


def test_a_start_does_not_go_without_the_access_file_of_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    last = LastCallers((AuthKind.OIDC,), file)
    last.write(tmp_path)
    assert LastCallers.read(tmp_path) == last

    with pytest.raises(StackError, match=r"access.json, is missing: choose one with --access"):
        _callers(Project.find(), None, None, None, last)

    file.write_text("{}")
    assert _callers(Project.find(), None, None, None, last)["access"] == file


def test_a_start_keeps_what_separates_the_tenants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, file = Project.find(), tmp_path / "access.json"
    file.write_text('{"tenants": {"acme": {"prefix": "tenants/acme/"}}}')
    first = StackOptions(tmp_path, **_callers(project, "oidc", file, Tenants.INDEX))
    LastCallers(first.auth, first.access, first.tenants).write(tmp_path)

    again = StackOptions(tmp_path, **_callers(project, None, None, None, LastCallers.read(tmp_path)))

    assert again == first
    assert again.chosen["tenants"] == "index"
    assert again.tenant_prefixes == {"acme": "tenants/acme/"}
    assert "As at the last start: --auth oidc --tenants index" in capsys.readouterr().out
    assert _callers(project, None, None, Tenants.LABEL, LastCallers.read(tmp_path))["tenants"] == "label"
    assert _callers(project, "none", None, None, LastCallers.read(tmp_path))["tenants"] == "label"


DAMAGED = ["", "[]", '{"auth": ["oidc"], "acc', '{"auth": ["friends"], "access": null}', '{"auth": 1}', "[" * 99_999]
DAMAGED += ['{"auth": [], "access": null}', '{"auth": ["cognito"], "access": null}']


@pytest.mark.parametrize("content", [*DAMAGED, '{"auth": ["oidc"], "access": null, "tenants": "none"}'])
def test_a_damaged_record_of_callers_does_not_open_the_stack(tmp_path: Path, content: str) -> None:
    (tmp_path / "callers.json").write_text(content)
    file = tmp_path / "access.json"

    for auth, access in ((None, None), (None, file), ("oidc", None), ("none,oidc", None)):
        with pytest.raises(StackError, match=r"callers.json, .* cannot be read: choose --auth, and --access with oidc"):
            _last_callers(tmp_path, auth, access)
    assert _last_callers(tmp_path, "none", None) is None
    assert _last_callers(tmp_path, "oidc", file) is None


def test_a_record_of_callers_that_is_not_a_file_does_not_open_the_stack(tmp_path: Path) -> None:
    (tmp_path / "callers.json").mkdir()

    with pytest.raises(StackError, match="cannot be read"):
        LastCallers.read(tmp_path)


@pytest.mark.parametrize("is_demonstration", [False, True])
def test_callers_are_kept_before_anything_starts_and_a_demonstration_changes_none(
    tmp_path: Path, *, is_demonstration: bool
) -> None:
    """MiniStack is not installed where the stack is started."""
    (tmp_path / "data").mkdir()
    own = LastCallers((AuthKind.OIDC,), tmp_path / "mine.json", Tenants.INDEX)
    project, ports = Project(tmp_path, tmp_path), free_ports(5)
    options = StackOptions(
        tmp_path / "data",
        port=ports[0],
        bedrock_port=ports[1],
        answers_port=ports[2],
        issuer_port=ports[3],
        console_port=ports[4],
        auth=(AuthKind.NONE, AuthKind.OIDC),
        access=project.sample_access,
        is_demonstration=is_demonstration,
    )
    found = []

    for last in (None, own):
        if last is not None:
            last.write(options.data)
        with pytest.raises((OSError, StackError)), local_stack(project, options):
            pass
        found.append(LastCallers.read(options.data))

    chosen = LastCallers(options.auth)
    assert found == [chosen, own if is_demonstration else chosen]


def test_make_says_nothing_about_what_is_installed_already() -> None:
    """Make names each goal that is up to date; a goal with a command of its own says nothing."""
    makefile = Path(__file__).parents[3] / "Makefile"
    parts = [line for line in makefile.read_text().splitlines() if line.startswith("\t$(PARALLEL)")]

    assert [line.split()[1:] for line in parts] == [["installed-local"], ["installed"]]


def test_down_does_not_claim_to_clean_up(tmp_path: Path) -> None:
    done = ragstack("down", data=tmp_path)

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "Error: No local stack is running\n"


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


@pytest.mark.parametrize("auth", [(AuthKind.NONE,), (AuthKind.OIDC,)])
def test_a_context_value_can_choose_no_access_file(tmp_path: Path, auth: tuple[AuthKind, ...]) -> None:
    file = tmp_path / "access.json"
    options = StackOptions(tmp_path, access=file, auth=auth, context={"access": "none"})

    assert options.access_file is None
    assert options.tenant_prefixes == {}
    assert replace(options, context={"access": "other.json"}).access_file == Path("other.json")
    assert replace(options, context={}).access_file == (file if AuthKind.OIDC in auth else None)
    with pytest.raises(StackError, match="needs an access file with tenants"):
        _ = replace(options, context={"access": "none", "tenants": "index"}).tenant_prefixes


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

    options = StartOptions(data_dir=tmp_path).read(project, arguments)
    chosen = StartOptions(data_dir=tmp_path, context=["answer_model=own"]).read(project, arguments)

    assert options.context.get("answer_model") == model
    assert chosen.context["answer_model"] == "own"
