"""Every command and every code block of the documentation runs, or says why it does not.

A comment directly above a block changes how it runs:

- ``<!-- not run: REASON -->``: it does not.
- ``<!-- runs until Ctrl-C -->``: a server; it stays until the next one, or the end of the page.
- ``<!-- continues -->``: Python that goes on where the last block of the page ended.
- ``<!-- conftest -->`` and ``<!-- pytest -->``: a conftest.py, and tests that run with it.
- ``<!-- prints -->``: a ``text`` block, whose lines the last block printed in this order, apart from times.
- ``<!-- needs: FILE -->``: skipped, with the reason, where FILE is missing below the checkout.

Blocks of one page run in order, in one folder, which has the ``samples/`` of the checkout, with a fifth of the judged
questions. The local stack is up, and the variables of ``ragstack env`` are set. ``text`` blocks are output.

Python and ``ragstack`` start in forks of a process that has imported what they need. ``.venv/bin/ragstack`` and servers
are started as their readers start them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3
from typer.main import get_command

from ragstack_local.cli import app
from tests.e2e.support import ROOT, LocalStack
from tests.support.children import start_child
from tests.support.ports import free_ports
from tests.support.prefork import RUN_PYTHON, programs
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "samples/README.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
MARKS = ("not run: ", "runs until Ctrl-C", "continues", "conftest", "pytest", "prints", "needs: ")
PORT, BEDROCK_PORT, ANSWERS_PORT, ISSUER_PORT, CONSOLE_PORT = "4566", "4567", "4568", "4569", "4580"
SECONDS = 120.0
IMPORTED = (
    *("boto3", "chromadb", "evaluation.command", "langgraph.graph", "mcp", "ragstack_common.multislice_retriever"),
    *("ragstack_common.search.engines.chroma", "ragstack_common.shortcuts", "ragstack_local.cli"),
    *(f"ragstack_local.commands.{each}" for each in ("ask", "build", "doctor", "failures", "query", "sync")),
)
"""What examples import, which takes most of their time."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    mark: str
    language: str
    code: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start("code")), found["mark"] or "", found["language"], found["code"])
        for found in BLOCK.finditer(text)
    ]


def without_times(text: str) -> list[str]:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [re.sub(r"\b\d[\d.,]* (ms|s)\b", "TIME", line) for line in lines if line]


@dataclass
class Reader:
    """Someone who follows a page from its top, in a folder of their own."""

    folder: Path
    env: dict[str, str]
    ports: dict[str, str]
    python: str = ""
    printed: str = ""
    server: "subprocess.Popen[bytes] | None" = None

    def follow(self, block: Block) -> None:
        code = self.here(block.code)
        if block.mark.startswith("needs: ") and not (ROOT / (needed := block.mark.removeprefix("needs: "))).exists():
            pytest.skip(f"{needed} is missing: run `make clients`")
        if block.mark == "runs until Ctrl-C":
            self.serve(block.code)
        elif block.mark == "prints":
            self.compare(code)
        elif block.mark in ("conftest", "pytest"):
            self.test(code, "conftest.py" if block.mark == "conftest" else "test_example.py")
        elif block.language in ("sh", "bash"):
            self.printed = self.run(["bash", "-euo", "pipefail", "-c", f"{code}\nenv -0 > .variables"])
            variables = (self.folder / ".variables").read_text(encoding="utf-8").rstrip("\0").split("\0")
            self.env = dict(variable.split("=", 1) for variable in variables)
        elif block.language == "python":
            self.python = (self.python if block.mark == "continues" else "") + code
            elsewhere = block.mark.startswith("needs: ")
            command = [str(ROOT / block.mark.removeprefix("needs: ")), "-c"] if elsewhere else [RUN_PYTHON]
            self.printed = self.run([*command, self.python])
        elif block.language == "json":
            json.loads(code)
        elif block.language == "toml":
            tomllib.loads(code)
        else:
            assert block.language == "text", f"{block.name} has no language"

    def here(self, code: str) -> str:
        """Replace the ports that every page names by those of the stack that runs now."""
        for documented, port in self.ports.items():
            code = re.sub(rf"\b{documented}\b", port, code)
        return code

    def run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def compare(self, documented: str) -> None:
        """Check that each documented line was printed, in this order; a wider terminal has longer lines."""
        printed, end = " ".join(without_times(self.printed)), 0
        for line in without_times(documented):
            start = printed.find(line, end)
            assert start >= 0, f"{line!r} is not in {printed[end:]!r}"
            end = start + len(line)

    def serve(self, code: str) -> None:
        self.leave()
        self.ports = {BEDROCK_PORT: str(free_ports(1)[0])}
        self.server = server = start_child(
            ["bash", "-c", f"exec {ROOT}/.venv/bin/{self.here(code).strip()}"],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

        def answers() -> bool:
            assert server.poll() is None, f"{code} ended with {server.returncode}"
            with suppress(urllib3.exceptions.HTTPError):
                return (
                    urllib3.request("GET", f"http://127.0.0.1:{self.ports[BEDROCK_PORT]}/health", retries=False).status
                    == 200
                )
            return False

        eventually(answers, SECONDS)

    def test(self, code: str, name: str) -> None:
        tests = self.folder / "tests"
        tests.mkdir(exist_ok=True)
        (tests / name).write_text(code, encoding="utf-8")
        if name != "conftest.py":
            self.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tests), str(tests)]
            )

    def leave(self) -> None:
        if self.server is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGINT)
            assert self.server.wait(SECONDS) in (0, 130)


@pytest.fixture(scope="module")
def new_stack(stack: LocalStack, handbook: Path) -> Iterator[LocalStack]:
    """The stack as readers have it: with the sample handbook alone."""
    yield stack
    # What an example uploaded; files of the handbook keep their keys.
    done = stack.run("delete", "people/", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


def copy_samples(folder: Path) -> None:
    """Link the samples, and keep a fifth of the judged questions with their documents.

    Evaluations of all take most of a page's time.
    """
    folder.mkdir()
    for sample in (ROOT / "samples").iterdir():
        (folder / sample.name).symlink_to(sample)
    (folder / "judged").unlink()
    judged = ROOT / "samples/judged"
    (folder / "judged/qrels").mkdir(parents=True)
    queries = (judged / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[::5]
    chosen = {json.loads(query)["_id"] for query in queries}
    header, *grades = (judged / "qrels/test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    grades = [grade for grade in grades if grade.split("\t")[0] in chosen]
    needed = {grade.split("\t")[1] for grade in grades}
    documents = (judged / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "judged/corpus.jsonl").write_text(
        "".join(document for document in documents if json.loads(document)["_id"] in needed), encoding="utf-8"
    )
    (folder / "judged/queries.jsonl").write_text("".join(queries), encoding="utf-8")
    (folder / "judged/qrels/test.tsv").write_text(header + "".join(grades), encoding="utf-8")


@pytest.fixture(scope="module")
def exports(new_stack: LocalStack) -> dict[str, str]:
    return dict(re.findall(r"^export (\w+)=(.*)$", new_stack.run("env").stdout, re.MULTILINE))


@pytest.fixture(scope="module")
def commands(new_stack: LocalStack) -> Iterator[Path]:
    """The folder of a `ragstack` that starts at once; `.venv/bin/ragstack` and servers are the real one."""
    with programs(IMPORTED, environment(new_stack)) as folder:
        yield folder


def environment(stack: LocalStack) -> dict[str, str]:
    """Return variables without those that lead astray: a page tells its readers all that they need."""
    return {name: value for name, value in stack.env.items() if not name.startswith(("AWS_", "HTTP_PROXY"))}


@pytest.fixture
def reader(new_stack: LocalStack, commands: Path, exports: dict[str, str], tmp_path: Path) -> Iterator[Reader]:
    stack = new_stack
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    copy_samples(tmp_path / "samples")
    places = (str(commands), str(ROOT / ".venv/bin"), os.environ["PATH"], str(ROOT / ".clients/bin"))
    # curl's own settings: an example whose answer is an error has failed.
    (tmp_path / ".curlrc").write_text("fail-with-body\nshow-error\n")
    env = {**environment(stack), **exports, "PATH": os.pathsep.join(places), "CURL_HOME": str(tmp_path)}
    documented = (PORT, BEDROCK_PORT, ANSWERS_PORT, ISSUER_PORT, CONSOLE_PORT)
    ports = dict(zip(documented, map(str, stack.ports), strict=True))
    found = Reader(tmp_path, env, ports)
    try:
        yield found
    finally:
        found.leave()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order(page: Path, reader: Reader, subtests: pytest.Subtests) -> None:
    for block in blocks_of(page):
        if not block.mark.startswith("not run: "):
            with subtests.test(block.name):
                reader.follow(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_mark_of_a_block_is_one_that_is_known(page: Path) -> None:
    unknown = [block.name for block in blocks_of(page) if block.mark and not block.mark.startswith(MARKS)]

    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_have_names_and_options_that_exist(page: Path) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    wrong = []
    for command in re.findall(r"(?<!`)`(?:\.venv/bin/)?ragstack ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
        name, *words = command.partition(" -- ")[0].split()
        parameters = commands[name].params if name in commands else []
        for inner in getattr(commands.get(name), "commands", {}).values():
            parameters = [*parameters, *(inner.params if inner.name in words else ())]
        known = {"--help", *(option for each in parameters for option in (*each.opts, *each.secondary_opts))}
        if name not in commands or not {word for word in words if word.startswith("-")} <= known:
            wrong.append(command)

    assert wrong == []
