"""Documentation, signatures and representations show no secret of the environment."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.settings.base import Settings

pytestmark = pytest.mark.xdist_group("every module")

ROOT: Final = Path(__file__).parents[1]
DOCUMENTED: Final = ("ragstack_common", "local_bedrock", "ragstack_local", "evaluation", "lambdas")
SOURCES: Final = (*DOCUMENTED, "infra", "benchmarks")
SENTINEL: Final = "a-secret-that-no-documentation-shows"

MAY_BE_SECRET: Final = re.compile(r"password|(?<!next_)token|api_key$|authorization|headers|^env|llm_url")
"""Names of fields that may hold a secret, or all variables, or a URL with a password."""

TEXTS: Final = re.compile(r"\bstr\b")
"""Types of such fields; flags and numbers are no secrets."""

NO_SECRET: Final = "local_bedrock.http.wire.Response.headers"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SENTINEL)
    return SENTINEL


def modules_of(package: str) -> Iterator[ModuleType]:
    found = importlib.import_module(package)
    yield found
    for info in pkgutil.walk_packages(found.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


@pytest.mark.parametrize("package", DOCUMENTED)
def test_rendered_documentation_shows_no_variable_of_the_environment(package: str, secret: str) -> None:
    assert [module.__name__ for module in modules_of(package) if secret in pydoc.render_doc(module)] == []


def test_the_signature_of_a_knowledge_base_shows_no_variable_of_the_environment(secret: str) -> None:
    assert secret not in pydoc.render_doc(KnowledgeBase)
    assert secret not in str(inspect.signature(KnowledgeBase))


def test_no_default_value_is_taken_from_the_environment() -> None:
    """Defaults are evaluated once, at import, and shown by every tool that shows a signature."""
    files = [ROOT / "app.py", *(file for name in SOURCES for file in sorted((ROOT / name).rglob("*.py")))]

    assert [f"{file.relative_to(ROOT)}:{line}" for file in files for line in lines_with_environment(file)] == []


def lines_with_environment(file: Path) -> list[int]:
    """Return the lines where a default, or a value of a module or class, is read from the environment."""
    source = file.read_text(encoding="utf-8")
    if "environ" not in source and "getenv" not in source:
        return []
    tree = ast.parse(source)
    return [value.lineno for value in kept_values(tree) if any(map(reads_environment, ast.walk(value)))]


def kept_values(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
        elif isinstance(node, ast.Module | ast.ClassDef):
            values = (each.value for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign))
            # A comparison such as `"NAME" in os.environ` keeps a flag.
            yield from (value for value in values if value is not None and not isinstance(value, ast.Compare))


def reads_environment(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("environ", "getenv")


@pytest.mark.parametrize("package", DOCUMENTED)
def test_representations_leave_out_what_may_be_secret(package: str) -> None:
    shown = [
        f"{kind.__module__}.{kind.__qualname__}.{name}"
        for module in modules_of(package)
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        for name, annotation in shown_fields(kind)
        if MAY_BE_SECRET.search(name) and TEXTS.search(annotation)
    ]

    assert [field for field in shown if field != NO_SECRET] == []


def shown_fields(kind: type[Any]) -> Iterator[tuple[str, str]]:
    if issubclass(kind, Settings):
        yield from ((name, str(field.annotation)) for name, field in kind.model_fields.items() if field.repr)
    elif dataclasses.is_dataclass(kind):
        yield from ((field.name, str(field.type)) for field in dataclasses.fields(kind) if field.repr)
