"""``ragstack access`` and ``ragstack whoami``, against the documents function with an access file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lambdas.documents import handler as documents
from ragstack_common.registry.records import Attributes, Observation, Status
from ragstack_local.connection.following import Uploaded
from ragstack_local.connection_options import ConnectionOptions
from ragstack_local.files.documents import ApiDocuments
from ragstack_local.files.ingestion import Round
from ragstack_local.files.uploading import note_unlabelled
from ragstack_local.files.uploads import LocalFile
from tests.ragstack_common.services.conftest import BUCKET, Aws
from tests.ragstack_local.commands.conftest import Run
from tests.support.api_server import BASE_PATH, api_server

POLICY = {
    "rights": {"read": ["everyone"], "operate": ["group:operators"]},
    "labels": {"people": {"allow": ["group:people"]}, "prices": {"allow": ["group:sales"]}},
    "prefixes": {"people/": {"default": "people"}},
}
KEY = "people/leave.md"


def made(tmp_path: Path, content: Any, name: str = "expectations.json") -> Path:
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.fixture
def rules(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An access file and a document of the label people; everybody who calls is the local operator."""
    monkeypatch.setenv("API_AUTH", "none")
    monkeypatch.setenv("ACCESS_FILE", str(made(tmp_path, POLICY, "access.json")))
    aws.record(KEY, Status.INDEXED, Observation(etag='"e"', label="people"), label="people")
    documents.callers.cache_clear()
    yield
    documents.callers.cache_clear()


pytestmark = pytest.mark.usefixtures("rules")


def visible(run: Run, viewer: str) -> bool:
    found: bool = json.loads(run("access", "explain", KEY, "--as", viewer, "--json").stdout)["visible"]
    return found


def test_a_grant_a_revocation_and_a_reset_take_effect(run: Run) -> None:
    seen = [visible(run, "user:bob,group:people")]
    for command in (
        ("revoke", "people", "user:bob"),
        ("grant", "people", "user:bob"),
        ("revoke", "people", "user:bob", "--reset"),
    ):
        assert run("access", *command).exit_code == 0
        seen.append(visible(run, "user:bob,group:people"))
        seen.append(visible(run, "user:bob"))

    assert seen == [True, False, False, True, True, True, False]


def test_an_explanation_names_label_and_rule(run: Run) -> None:
    run("access", "grant", "people", "user:bob")

    shown = run("access", "explain", f"s3://{BUCKET}/{KEY}", "--as", "bob").stdout
    hidden = run("access", "explain", KEY, "--as", "group:sales").stdout

    assert shown.splitlines()[-3:] == [
        f"bob sees s3://{BUCKET}/{KEY}",
        "Label    people: The default of the prefix 'people/'",
        "Rule     people allows user:bob, by a change of local",
    ]
    assert f"group:sales does not see s3://{BUCKET}/{KEY}" in hidden
    assert "Note" not in hidden


def test_an_explanation_says_that_groups_are_missing(run: Run) -> None:
    shown = run("access", "explain", KEY, "--as", "bob").stdout

    assert "bob sees it with one of group:operators, group:people" in shown


def test_show_lists_rules_and_changes(run: Run) -> None:
    changed = run("access", "revoke", "people", "user:eve").stdout

    everything = run("access", "show").stdout
    one = json.loads(run("access", "show", "people", "--json").stdout)
    unknown = run("access", "show", "nothing")

    assert changed.splitlines()[-1].split() == ["people", "group:people", "user:eve"]
    for words in (
        ("prices", "group:sales"),
        ("operate", "group:operators"),
        ("people/",),
        ("deny", "user:eve", "local"),
    ):
        assert any(set(words) <= set(line.split()) for line in everything.splitlines()), words
    assert [each["label"] for each in one["labels"]] == ["people"]
    assert (one["version"], one["changes"][0]["principal"]) == (1, "user:eve")
    assert "there is no label 'nothing'" in str(unknown.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grant", "nothing", "user:bob"), "There is no label 'nothing'"),
        (("grant", "people", "bob"), "principal"),
        (("explain", KEY, "--as", "team:x"), "is not a principal"),
    ],
)
def test_a_wrong_name_is_explained(run: Run, arguments: tuple[str, ...], words: str) -> None:
    assert words in str(run("access", *arguments).exception)


def test_expectations_that_are_met_succeed(run: Run, tmp_path: Path) -> None:
    file = made(tmp_path, [{"as": "group:people", "sees": [KEY]}, {"as": "group:sales", "hidden": [KEY]}])

    done = run("access", "test", str(file))

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "All 2 expectations are met.")


def test_what_differs_is_shown(run: Run, tmp_path: Path) -> None:
    file = made(tmp_path, [{"as": "user:eve", "sees": [KEY], "hidden": ["people/typo.md"]}])

    shown = run("access", "test", str(file))
    answer = json.loads(run("access", "test", str(file), "--json").stdout)

    assert shown.exit_code == 1
    assert "2 of 2 expectations are not met" in shown.stdout
    assert [(each["document"], each["expected"], each["found"]) for each in answer["different"]] == [
        (KEY, "sees", "hidden"),
        ("people/typo.md", "hidden", "unknown"),
    ]


def test_expectations_of_a_user_without_groups_are_noted(run: Run, tmp_path: Path) -> None:
    """They hold, and say nothing about the user as a member of a group."""
    file = made(tmp_path, [{"as": "bob", "hidden": [KEY]}, {"as": "bob,group:people", "sees": [KEY]}])

    done = run("access", "test", str(file))

    assert done.exit_code == 0
    assert "bob: other groups would see something else." in done.output


@pytest.mark.parametrize("content", ["{", "[]", "[{}]", [{"sees": [KEY]}], [{"as": "x", "see": [KEY]}]])
def test_a_malformed_file_of_expectations_is_refused(run: Run, tmp_path: Path, content: Any) -> None:
    assert "expectations" in str(run("access", "test", str(made(tmp_path, content))).exception)


def test_whoami_shows_rights_and_labels(run: Run) -> None:
    shown = run("whoami").stdout.splitlines()
    answer = json.loads(run("whoami", "--json").stdout)

    assert shown[-5:] == [
        "Name     local",
        "Also     everyone",
        "Rights   operate, read, write",
        "Sees     every document",
        "Writes   everywhere else; people/ (people)",
    ]
    assert (answer["name"], answer["labels"]) == ("local", None)


def test_login_needs_an_issuer(run: Run) -> None:
    assert "NotFound: There is no GET" in str(run("login", "--client-id", "x").exception)
    assert "--client-id" in run("login", "--issuer", "https://issuer.example").output


def test_a_stack_without_an_access_file_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCESS_FILE")
    documents.callers.cache_clear()
    documents.service.cache_clear()

    assert "This stack has no access file" in run("access", "show").stdout
    assert "deploy it with access=FILE" in str(run("access", "grant", "people", "user:bob").exception)


@pytest.fixture
def noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what is noted after an upload of keys, which may have sidecars, through the API."""

    def note(*keys: str, given: Attributes | None = None, sidecar: str = "") -> str:
        files = []
        for number, key in enumerate(keys):
            files.append(LocalFile(tmp_path / f"{number}.md", key))
            if sidecar:
                files[-1].sidecar_path.write_text(sidecar)
        done = Round(uploaded={f"s3://{BUCKET}/{key}": Uploaded("e", None) for key in keys})
        with api_server(lambda _: documents.app.resolve, {}) as url:
            stack = ConnectionOptions(api_url=url + BASE_PATH)
            note_unlabelled(stack, ApiDocuments(stack.api(), given or {}), files, done, as_json=True)
        return " ".join(capsys.readouterr().err.split())

    return note


def use(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("ACCESS_FILE", str(file))
    documents.callers.cache_clear()
    documents.service.cache_clear()


def test_uploads_that_only_operators_see_are_noted(noted: Callable[..., str]) -> None:
    assert "2 documents have no access label, so only operators see them." in noted("a.md", "notes/b.md", KEY)
    assert "1 document has no access label, so only operators see it." in noted("a.md")
    assert "under people/: choose the folder with --prefix" in noted("a.md")
    assert "label" not in noted(KEY)
    assert "label" not in noted()


def test_the_longest_prefix_decides_whether_an_upload_is_noted(
    noted: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes = {"": {"default": "people"}, "drafts/": {}, "mixed/": {"labels": ["prices"]}}
    use(monkeypatch, made(tmp_path, {**POLICY, "prefixes": prefixes}, "longest.json"))

    assert "no access label" not in noted("any.md")
    assert "1 document has no access label" in noted("drafts/a.md", "any.md")
    assert "under any other prefix: choose" in noted("drafts/a.md")
    assert "no access label" in noted("mixed/a.md")
    assert "no access label" in noted("mixed/a.md", given={"access": "people"})
    assert "no access label" not in noted("mixed/a.md", given={"access": "prices"})
    assert "no access label" not in noted("mixed/b.md", sidecar='{"metadataAttributes": {"access": "prices"}}')


@pytest.mark.parametrize(
    ("prefixes", "advice"),
    [
        ({"mixed/": {"labels": ["prices"]}}, "Documents can name one under mixed/: add --metadata access=LABEL."),
        ({}, "The access file has no prefix that gives a label: add one, and deploy it."),
    ],
)
def test_the_note_says_how_documents_get_a_label(
    noted: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefixes: Any, advice: str
) -> None:
    use(monkeypatch, made(tmp_path, {**POLICY, "prefixes": prefixes}, "other.json"))

    assert advice in noted("a.md")


def test_uploads_into_a_stack_without_an_access_file_are_not_noted(
    noted: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCESS_FILE")
    documents.callers.cache_clear()
    documents.service.cache_clear()

    assert "label" not in noted("a.md")
