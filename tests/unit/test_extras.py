"""Each optional package is optional: nothing but its own module needs it, and its absence is an error that says so."""

import subprocess
import sys

import pytest

EXTRAS = {
    "chroma": "chromadb",
    "milvus": "pymilvus",
}
OPTIONAL = ("chromadb", "pymilvus", "langgraph", "langchain_core", "opentelemetry", "numpy", "apsw", "onnxruntime")

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def without(names: tuple[str, ...], code: str) -> str:
    """Run Python in which packages are not installed; return what it prints."""
    script = BLOCKED.format(names=set(names)) + code
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["ragstack_common.retrieval", "lambdas.query.handler", "lambdas.ingestion.handler"])
def test_what_functions_import_needs_none_of_the_extras(module: str) -> None:
    assert without(OPTIONAL, f"import {module}; print('imported')") == "imported"


@pytest.mark.parametrize(("engine", "package"), EXTRAS.items())
def test_an_engine_without_its_package_says_what_to_install(engine: str, package: str) -> None:
    code = f"""
from ragstack_common.errors import MissingEngineError
from ragstack_common.retrieval import create_retrieval_backend
try:
    create_retrieval_backend({{"type": {engine!r}}})
except MissingEngineError as error:
    print(error)
"""

    message = without((package,), code)

    assert package in message
    assert f"ragstack[{engine}]" in message
