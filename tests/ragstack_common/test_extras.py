"""Optional packages are needed only by their own module, and a missing one is an error that says what to install."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.core.errors import command_to_install

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = (
    *("chromadb", "pymilvus", "langgraph", "langchain_core", "opentelemetry", "numpy", "apsw", "onnxruntime"),
    *("markdown_it", "dotenv"),
)
MISSING = {
    "create_retrieval_backend({'type': 'chroma'})": ("chromadb", "chroma"),
    "create_retrieval_backend({'type': 'milvus'})": ("pymilvus", "milvus"),
    "from ragstack_common.search.engines.milvus.backend import MilvusBackend": ("pymilvus", "milvus"),
    "from ragstack_common.search.engines.chroma.backend import ChromaBackend": ("chromadb", "chroma"),
    "from ragstack_common.embedding import HashedEmbedding": ("numpy", "local"),
    "from ragstack_common.embedding import load; load('onnx:model')": ("onnxruntime", "local"),
    "from ragstack_common.embedding import load; load('openai:http://127.0.0.1:1/v1#x')": ("openai", "local"),
    "from ragstack_common.embedding import load; load('fastembed')": ("fastembed", "semantic"),
    "from ragstack_common.embedding import load; from pathlib import Path; load('bedrock:m', Path())": (
        "apsw",
        "local",
    ),
    "from ragstack_common.knowledge_base import KnowledgeBase; KnowledgeBase('a', 'b')": ("chromadb", "chroma"),
    "from ragstack_common.search.rerank.factory import load_reranker; load_reranker('cross_encoder:model')": (
        "onnxruntime",
        "local",
    ),
    "from ragstack_common.search.tracing import export_spans; export_spans(None)": ("opentelemetry", "telemetry"),
    "from ragstack_common.answers.factory import provider_from;"
    " from ragstack_common.settings.answers import AnswerSettings; provider_from(AnswerSettings())": (
        "markdown_it",
        "answers",
    ),
    "from evaluation import table": ("matplotlib", "evaluation"),
}

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )


def forks(imports: str, programs: list[str]) -> str:
    """Return a program that runs others in forks of itself, one by one: imports take most of their time."""
    return f"""{imports}
import os, sys
for program in {programs!r}:
    if os.fork() == 0:
        try:
            exec(program)
        except SystemExit as ended:
            print("exit", ended.code, flush=True)
        sys.stderr.flush()
        os._exit(0)
    os.wait()
"""


def without(names: tuple[str, ...], code: str) -> str:
    """Run Python in which packages are not installed; return what it prints."""
    done = run("-c", BLOCKED.format(names=set(names)) + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["ragstack_common.search", "lambdas.query.handler", "lambdas.ingestion.handler"])
def test_functions_need_none_of_the_extras(module: str) -> None:
    assert without(OPTIONAL, f"import {module}; print('imported')") == "imported"


@pytest.mark.slow
def test_a_missing_package_is_one_line_that_names_the_extra() -> None:
    imports = """
import json
from ragstack_common.core import errors
from ragstack_common.core.errors import MissingPackageError
errors.DISTRIBUTION = "as-in-a-layer"
from ragstack_common.search import create_retrieval_backend
from ragstack_common.search.engines import bedrock
"""
    tries = [
        f"""{BLOCKED.format(names={package})}
try:
    {code}
except MissingPackageError as error:
    print(json.dumps([{code!r}, str(error)]), flush=True)
"""
        for code, (package, _) in MISSING.items()
    ]

    messages = dict(map(json.loads, run("-c", forks(imports, tries)).stdout.splitlines()))

    assert messages.keys() == MISSING.keys()
    for code, (package, extra) in MISSING.items():
        expected = rf".+ needs the package {package}\b.*: pip install 'as-in-a-layer\[{extra}\]'"
        assert re.fullmatch(expected, messages[code]), code


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'ragstack-kb[chroma]'"),
        (
            {"url": "file:///tmp/ragstack_kb.whl", "archive_info": {}},
            "pip install 'ragstack-kb[chroma] @ file:///tmp/ragstack_kb.whl'",
        ),
        (
            {"url": "https://git.example/ragstack", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'ragstack-kb[chroma] @ git+https://git.example/ragstack'",
        ),
        ({"url": "file:///checkout", "dir_info": {"editable": True}}, "run `make setup` in the checkout"),
    ],
    ids=["index", "wheel", "git", "checkout"],
)
def test_an_extra_is_installed_from_where_the_package_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, command: str
) -> None:
    folder = tmp_path / "ragstack_kb-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: ragstack-kb\n")
    if origin:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    assert command_to_install("chroma") == command


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["chroma", "milvus"])
def test_an_engine_needs_none_of_the_packages_of_other_extras(engine: str) -> None:
    pytest.importorskip({"chroma": "chromadb", "milvus": "pymilvus"}[engine])
    module = f"ragstack_common.search.engines.{engine}.backend"
    code = f"import {module}; from ragstack_common.embedding import QueryEmbedding; print('imported')"

    assert without(("apsw", "typer", "pypdfium2", "openai", "fastembed"), code) == "imported"


@pytest.mark.slow
@pytest.mark.parametrize(("argument", "exit_code"), [("--help", 0), ("samples/judged", 3)])
def test_an_evaluation_without_its_packages_has_help_and_names_its_own_extra(argument: str, exit_code: int) -> None:
    """Not the smaller extra of numpy, which is imported first."""
    commands = ["search", "filters", "answers", "relevance"]
    blocked = BLOCKED.format(names={"matplotlib", "numpy", "onnxruntime", "apsw"})
    programs = [f"sys.argv = ['ragstack', 'eval', {each!r}, {argument!r}]; main()" for each in commands]

    done = run("-c", forks(f"{blocked}\nfrom ragstack_local.__main__ import main", programs))

    assert done.stdout.count(f"exit {exit_code}\n") == len(commands), done.stdout + done.stderr
    assert done.stdout.count("Example:") == (len(commands) if argument == "--help" else 0)
    assert done.stderr.count("The evaluation needs the package") == (0 if argument == "--help" else len(commands))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "exit_code"), [("ragstack_local", 3), ("local_bedrock", 2)])
def test_the_command_without_its_packages_says_what_to_install(module: str, exit_code: int) -> None:
    blocked = BLOCKED.format(names={"typer"})
    code = f"{blocked}\nsys.argv = ['ragstack']; from {module}.__main__ import main; main()"

    done = run("-c", code)

    assert done.returncode == exit_code
    assert re.fullmatch(r"Error: .*typer.*: run `make setup` in the checkout\n", done.stderr)


def test_a_command_that_needs_a_missing_package_says_so_in_one_line(tmp_path: Path) -> None:
    blocked = BLOCKED.format(names={"apsw"})
    arguments = ["ragstack", "bedrock", "--port", "0", "--data-dir", str(tmp_path)]
    code = f"{blocked}\nsys.argv = {arguments!r}; from ragstack_local.__main__ import main; main()"

    done = run("-c", code)

    assert done.returncode == 3
    assert re.fullmatch(r"Error: .*apsw.*: run `make setup` in the checkout\n", done.stderr)


@pytest.mark.parametrize("names", [set[str](), {"typer", "rich"}])
def test_the_version_is_printed_with_or_without_the_extras(names: set[str]) -> None:
    code = BLOCKED.format(names=names) + "\nsys.argv = ['ragstack', '--version']\n"

    done = run("-c", code + "from ragstack_local.__main__ import main; main()")

    assert (done.returncode, done.stdout) == (0, f"{DISTRIBUTION} {__version__}\n")


def test_install_hints_name_our_distribution() -> None:
    foreign = re.compile(r"ragstack\[|\binstall (-\S+ )*['\"]?ragstack(?!-kb|[\w.-])")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = [ROOT / path for path in files.split("\0") if path.endswith((".py", ".md", ".toml", ".txt", ".in"))]

    found = [path for path in texts if path.is_file() and foreign.search(path.read_text())]

    assert found == []


def test_the_library_pins_none_of_its_packages_to_one_version() -> None:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    listed = [requirement for group in groups for requirement in group if not requirement.startswith(DISTRIBUTION)]

    assert [requirement for requirement in listed if not re.search(r">=[\d.]+,<[\d.]+$", requirement)] == []
