"""What the command line says, and with which code it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import chromadb
import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.settings.names import NO_RERANKER, REQUEST_RERANKERS
from ragstack_local import cli
from ragstack_local.cli import app
from ragstack_local.connection import running
from tests.ragstack_local.retrieve_answers import answer
from tests.ragstack_local.support import Api, ragstack, running_stack, stack_at
from tests.support.ports import free_ports

ROOT = Path(__file__).parents[2]
RERANKERS = (NO_RERANKER, *REQUEST_RERANKERS)
GROUPS = {
    name: list(command.commands.values()) if isinstance(command, TyperGroup) else [command]
    for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
}
COMMAND_OBJECTS = [each for group in GROUPS.values() for each in group]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def assert_one_line(done: "subprocess.CompletedProcess[str]", words: str, code: int = 3) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_help_names_the_commands_that_take_an_api_url() -> None:
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})

    words = " ".join(done.output.split())
    named = re.search(r"these commands need only the URL of an API: (.+?)\.", words)
    takers = {
        name
        for name, group in GROUPS.items()
        if all(any(part.name == "api_url" for part in each.params) for each in group)
    }
    assert named is not None
    assert set(re.split(", | and ", named[1])) == takers


QUESTION = """
from ragstack_local import cli
from ragstack_local.connection_options import confirm

def probe() -> None:
    \"\"\"Ask.\"\"\"
    confirm("Delete?")

if __name__ == "__main__":
    cli.COMMANDS["probe"] = "probe:probe"
    cli.main()
"""


@pytest.mark.parametrize(("typed", "code"), [(None, 130), (b"n\n", 1), (b"\x04", 1), (b"y\n", 0)])
def test_only_ctrl_c_at_a_question_is_an_interruption(tmp_path: Path, typed: bytes | None, code: int) -> None:
    (tmp_path / "probe.py").write_text(QUESTION)
    terminal, stdin = os.openpty()
    command = [sys.executable, str(tmp_path / "probe.py"), "probe"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=stdin, stderr=subprocess.PIPE, text=True, bufsize=0) as process:
        assert process.stderr is not None
        shown = ""
        while "[y/N]" not in shown:
            shown += process.stderr.read(1)
        if typed is None:
            process.send_signal(signal.SIGINT)
        else:
            os.write(terminal, typed)
        left = process.stderr.read()
    os.close(terminal)
    os.close(stdin)

    assert process.returncode == code
    assert ("Interrupted" in left) == (typed is None)


def test_the_help_lists_a_command_that_its_module_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = EntryPoint("foreign", "json:JSONDecodeError", cli.ENTRY_POINTS)
    monkeypatch.setattr(cli, "_points", lambda: {"foreign": foreign})

    shown = CliRunner().invoke(app, ["--help"])

    assert re.search(r"foreign +Subclass of ValueError", shown.output), shown.output


PLACEHOLDERS = {"handbook", "notes"}
"""First parts of paths in examples that stand for files of the user's own."""


@pytest.mark.parametrize("command", COMMAND_OBJECTS, ids=lambda each: each.name)
def test_the_paths_in_examples_of_the_help_exist(command: TyperCommand) -> None:
    paragraphs = (command.help or "").split("\n\n")

    examples = [text.partition(":  ")[2].split() for text in paragraphs if re.search(":  .*ragstack", text)]
    paths = [Path(word) for words in examples for word in words if re.fullmatch(r"[\w.-]*\w/[\w./-]*", word)]
    assert examples
    assert [path for path in paths if path.parts[0] not in PLACEHOLDERS and not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("searhc", "x"), "No such command 'searhc'"),
        (("query",), "give the question once"),
        (("query", "", "-q", "x"), "give the question once"),
        (("up", "--auth", "iam"), "iam is not none, oidc or none,oidc"),
        (("up", "--access", __file__), "add --auth oidc or --auth none,oidc"),
        (("login", "--user", "alice", "--device"), "give --user or --device"),
        (("ingest",), "Missing argument 'PATHS"),
        (("query", "x", "--filter", "{topic: travel}"), "not JSON"),
        (("query", "x", "--top-k", "0"), "Invalid value for '--top-k'"),
        (("query", "x", "--top-k", "101"), "Invalid value for '--top-k'"),
        (("ingest", "x", "--timeout", "0"), "Invalid value for '--timeout'"),
        (("up", "--port", "65536"), "Invalid value for '--port'"),
        (("status", "--loudly"), "--loudly"),
        (("ingest", "x", "--watch", "--json"), "there is no result to print"),
        (("replay", "s3://b/a", "--all"), "give URIs, or --all, not both"),
        (("discard",), "name messages, or give --unreadable"),
        (("ingest", "x", "--metadata", "topic="), "'topic=' is not a NAME=VALUE pair"),
        (("delete", "--corpus", ""), "Invalid value for '--corpus': it is blank"),
        (("query", "x", "--corpus", ""), "Invalid value for '--corpus': it is blank"),
        (("query", "x", "--doc-version", ""), "Invalid value for '--doc-version': it is blank"),
        (("build", "x", "--corpus", ""), "Invalid value for '--corpus': it is blank"),
        (("up", "--context", "search_k"), "search_k is not a NAME=VALUE pair"),
        (("query", "one", "-q", "two"), "give the question once"),
        (("query", "x", "--deduplicate-by", "page"), "'page' is not one of 'document', 'chunk'"),
        (("query", "x", "--engine", "bedrock", "-c", "handbook"), "is for --engine chroma"),
        (("query", "x", "--engine", "bedrock", "--db-path", "chroma"), "is for --engine chroma"),
        (("query", "x", "--aws", "-c", "handbook"), "stack on AWS, but the engine chroma runs on this machine"),
        (("query", "x", "--rerank", "semantic"), f"'semantic' is not one of {', '.join(RERANKERS)}, bedrock[:"),
        (("query", "x", "--rerank", "bedrock"), f"the API accepts only {' or '.join(RERANKERS)}"),
        (("query", "x", "--api-url", "ftp://a.example"), "is not the URL of an API: write it up to the stage"),
        (("query", "x", "--api-url", "https://me:secret@a.example"), "Leave the user name and the password out"),
    ],
)
def test_a_wrong_use_is_explained_and_ends_with_2(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "RAGSTACK_DATA": str(tmp_path)})

    assert done.exit_code == 2
    assert words.lower() in " ".join(done.output.replace("│", " ").split()).lower()
    assert "Traceback" not in done.output


@pytest.mark.parametrize("arguments", [("query", "x"), ("status",), ("down",)])
def test_a_missing_stack_is_reported_in_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert_one_line(ragstack(*arguments, data=tmp_path), "No local stack is running")


PORT_OPTIONS = ("--port", "--bedrock-port", "--answers-port", "--issuer-port", "--console-port")


@pytest.mark.parametrize("option", PORT_OPTIONS)
def test_a_taken_port_is_named_with_its_option_before_anything_starts(
    tmp_path: Path, taken_port: int, option: str
) -> None:
    ports = dict(zip(PORT_OPTIONS, free_ports(len(PORT_OPTIONS)), strict=True)) | {option: taken_port}
    options = [str(part) for pair in ports.items() for part in pair]

    done = ragstack("up", "--auth", "oidc", *options, "--data-dir", "data", data=tmp_path)

    assert_one_line(done, f"Port {taken_port} (")
    assert f"is in use: stop what listens there, or choose another with {option}" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_second_stack_is_recorded_in_a_data_folder_of_its_own(tmp_path: Path, taken_port: int) -> None:
    """It gets as far as the ports."""
    ports = [
        str(part) for pair in zip(("--bedrock-port", "--answers-port"), free_ports(2), strict=True) for part in pair
    ]

    with running_stack(tmp_path, stack_at()), running.announcing(tmp_path / "used/running.json", tmp_path / "used"):
        second = ragstack("up", "--port", str(taken_port), *ports, "--data-dir", "data", data=tmp_path)
        default = ragstack("up", "--port", str(taken_port), *ports, data=tmp_path)
        third = ragstack("up", "--port", str(taken_port), *ports, "--data-dir", "used", data=tmp_path)
        left = ragstack("status", data=tmp_path)

    assert_one_line(second, f"Port {taken_port} (MiniStack) is in use")
    assert_one_line(default, "A second one needs a folder of its own (--data-dir) and other ports")
    assert_one_line(third, f"A local stack is running already in {tmp_path / 'used'}")
    assert "No local stack is running" not in left.stderr


def test_one_port_for_both_servers_is_refused(tmp_path: Path) -> None:
    port = str(*free_ports(1))

    done = ragstack("demo", "--port", port, "--bedrock-port", port, "--data-dir", "data", data=tmp_path)

    assert_one_line(done, f"cannot share port {port}")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--embedding", "magic"), "There is no embedding 'magic'"), (("--data-dir", __file__), "cannot be used")],
)
def test_a_bedrock_that_cannot_start_says_why(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = ragstack("bedrock", "--port", "0", *options, data=tmp_path)

    assert_one_line(done, words)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("bedrock --fault operation=Retreive,kind=drop", "No operation matches"),
        ("bedrock --fault kind=teapot", "should be 'throttling'"),
        ("bedrock --quota retreive_per_second=1", "retreive_per_second: "),
        ("bedrock --indexing-seconds -1", "--indexing-seconds"),
        ("up -- --quotaz", "--quotaz"),
        ("up -- --fault kind=teapot", "should be 'throttling'"),
        ("up upp", "unexpected extra argument"),
    ],
)
def test_options_for_the_bedrock_are_checked_before_anything_starts(tmp_path: Path, command: str, words: str) -> None:
    name, *options = command.split()

    done = ragstack(name, "--data-dir", tmp_path / "data", *options, data=tmp_path)

    assert done.returncode == 2, done.stdout + done.stderr
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert name == "bedrock" or not (tmp_path / "data").exists()


def test_a_missing_path_is_reported_before_the_stack_is_called(tmp_path: Path) -> None:
    assert_one_line(ragstack("ingest", "missing.md", data=tmp_path), "missing.md does not exist", 2)


def test_a_missing_document_exits_as_nothing_found(tmp_path: Path, api: Api) -> None:
    api.will_answer(200, {"documents": [], "next_token": None})

    for command in ("status", "delete"):
        done = ragstack(command, "leave.md", "--api-url", api.url, data=tmp_path)
        assert (done.returncode, "the registry has leave.md" in done.stderr) == (1, True), done.stderr


def test_a_folder_without_documents_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with running_stack(tmp_path, stack_at()):
        done = ragstack("ingest", "empty", data=tmp_path)

    assert (done.returncode, "There are no documents in these paths" in done.stderr) == (2, True)


def test_a_query_says_everything_that_the_api_takes(tmp_path: Path, api: Api) -> None:
    api.will_answer(200, answer(slices=[]))

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        ragstack(
            *("query", "-q", "what?", "--corpus", "people", "--doc-version", "2026", "--min-score", "0.5"),
            *("--rerank", "lexical", "--deduplicate-by", "chunk", "--passages", "2", "--explain"),
            data=tmp_path,
        )
        ragstack("query", "what?", "--rerank", "none", data=tmp_path)

    assert [request["body"] for request in api.requests] == [
        {
            "query": "what?",
            "corpus_filter": "people",
            "version_filter": "2026",
            "min_score": 0.5,
            "rerank": "lexical",
            "deduplicate_by": "chunk",
            "passages": 2,
            "explain": True,
        },
        {"query": "what?", "rerank": False},
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("{", "engine.json is unusable: it must be a JSON object"),
        ('{"uri": "x"}', "engine.json is unusable: it has no type"),
    ],
)
def test_an_unusable_engine_is_an_error_in_one_line(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "engine.json").write_text(content)

    done = ragstack("query", "x", "--engine", "engine.json", data=tmp_path)

    assert_one_line(done, words)


def test_an_unknown_engine_is_an_error_that_lists_the_choices(tmp_path: Path) -> None:
    assert_one_line(ragstack("query", "x", "--engine", "elastic", data=tmp_path), "--engine elastic is unknown: write")


@pytest.fixture
def leases(tmp_path: Path) -> tuple[str, ...]:
    """A question to the engine that engine.json describes."""
    client = chromadb.PersistentClient(tmp_path / "chroma")
    embedding = HashedEmbedding()
    texts = ["A tenant may leave with thirty days of notice.", "A landlord returns the deposit."]
    collection = client.create_collection("leases", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    collection.add(
        ids=["notice", "deposit"],
        documents=texts,
        embeddings=embedding.embed(texts),
        metadatas=[{"source": "notice.md", "version": "1"}, {"source": "deposit.md", "version": "2"}],
    )
    engine = {"type": "chroma", "path": "chroma", "collection_name": "leases", "embedding": "hashed"}
    (tmp_path / "engine.json").write_text(json.dumps(engine))
    return ("query", "the deposit", "--engine", "engine.json")


def test_an_engine_in_a_file_is_searched_without_a_stack(tmp_path: Path, leases: tuple[str, ...]) -> None:
    shown = ragstack(*leases, "--rerank", "lexical", "--explain", data=tmp_path)
    second = ragstack(*leases, "--doc-version", "1", "--json", data=tmp_path)

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.index("deposit.md") < shown.stdout.index("notice.md")
    assert "How the results were ranked" in shown.stdout
    assert "█" in shown.stdout
    assert [result["source"] for result in json.loads(second.stdout)["results"]] == ["notice.md"]


@pytest.mark.parametrize(
    ("rerank", "signals"),
    [
        ("none", set()),
        ("lexical", {"phrase", "frequency", "proximity", "metadata", "vector"}),
        ("bedrock", {"bedrock"}),
        ("bedrock:arn:aws:bedrock:us-east-1::foundation-model/amazon.rerank-v1:0", {"bedrock"}),
    ],
)
def test_a_reranker_is_chosen_by_its_name_for_an_engine(
    tmp_path: Path, bedrock_url: str, leases: tuple[str, ...], rerank: str, signals: set[str]
) -> None:
    done = ragstack(
        *(*leases, "--rerank", rerank, "--explain", "--json"),
        data=tmp_path,
        AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME=bedrock_url,
    )

    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [set(result["ranking"]["contributions"]) for result in answer["results"]] == [signals, signals]
    assert answer["notes"] == []


@pytest.mark.parametrize(
    ("command", "body", "lines"),
    [
        (
            "corpora",
            {
                "corpora": [
                    {"name": "people", "configured": True, "searchable": True, "documents": None},
                    {"name": "lost", "configured": True, "searchable": False, "documents": 0},
                    {"name": "product", "configured": False, "searchable": True, "documents": None},
                ],
                "complete": True,
            },
            ["people  configured", "lost  configured  no searchable documents", "product"],
        ),
        (
            "versions",
            {"versions": [False, 3, "1", "[2]"], "documents": None, "complete": False},
            ["False  (boolean)", "3  (number)", "1", "[2]", "There are more."],
        ),
    ],
)
def test_corpora_and_versions_are_listed(
    tmp_path: Path, api: Api, command: str, body: dict[str, object], lines: list[str]
) -> None:
    api.will_answer(200, body)

    with running_stack(tmp_path, stack_at(api_url=api.url)):
        shown = ragstack(command, data=tmp_path)
        as_json = ragstack(command, "--json", data=tmp_path)

    assert shown.stdout.splitlines() == lines
    assert json.loads(as_json.stdout) == body
    assert {request["path"] for request in api.requests} == {f"/prod/api/{command}"}


def test_commands_start_without_the_engine_of_the_local_bedrock() -> None:
    heavy = (
        "apsw",
        "numpy",
        "pypdfium2",
        "starlette",
        "aws_cdk",
        "chromadb",
        "watchfiles",
        "httpx2",
        "ragstack_common.search",
    )
    loaded = "import sys; from typer.main import get_command; from ragstack_local.cli import app;"
    loaded += " list(get_command(app).commands.values());"
    code = f"{loaded} print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_search_over_http_does_not_import_the_aws_sdk() -> None:
    code = (
        "import sys, ragstack_local.commands.query, ragstack_local.api.http_operations; print('boto3' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


LIGHT = {"typer", "annotated_doc", "click", "shellingham", "typing_extensions"}
"""All packages that the command line imports before it knows the command."""

LIGHT_MODULES = {
    *("ragstack_common", "ragstack_common.core", "ragstack_common.core.errors"),
    *("ragstack_local", "ragstack_local.__main__", "ragstack_local.cli", "ragstack_local.errors"),
    "ragstack_common.core.addresses",
    *("ragstack_local.commands", "ragstack_local.connection", "ragstack_local.connection.environment"),
    *("local_bedrock", "evaluation"),
}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_help_and_the_version_import_no_command(option: str) -> None:
    own = [path.name for path in ROOT.iterdir() if (path / "py.typed").is_file()]
    code = f"""
import sys
before = set(sys.modules)
from ragstack_local.__main__ import main
sys.argv = ["ragstack", {option!r}]
try:
    main()
finally:
    print(*set(sys.modules) - before, file=sys.stderr)
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    packages = {name.partition(".")[0] for name in done.stderr.split()} - sys.stdlib_module_names
    modules = {name for name in done.stderr.split() if name.partition(".")[0] in own}
    assert packages - set(own) - LIGHT == set()
    assert modules - LIGHT_MODULES == set()


def test_the_help_lists_each_command_with_its_docstring() -> None:
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})

    listed = " ".join(done.output.partition("Commands:")[2].split())
    for command in get_command(app).commands.values():  # type: ignore[attr-defined]
        summary = " ".join((command.help or "").partition("\n\n")[0].split())
        assert f"{command.name} {summary}" in listed.replace("- ", "-")


@pytest.mark.parametrize("arguments", [("query", ""), ("query", "-q", ""), ("ask", "")])
def test_an_empty_question_is_wrong_usage(tmp_path: Path, api: Api, arguments: tuple[str, ...]) -> None:
    done = ragstack(*arguments, "--api-url", api.url, data=tmp_path)

    assert done.returncode == 2, done.stdout
    assert "at least 1 character" in done.stderr
    assert api.requests == []
