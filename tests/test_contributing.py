"""The recipes of CONTRIBUTING.md work, and name what exists."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import App, Stack, aws_cloudwatch
from aws_cdk.assertions import Template
from mcp import Client

from infra.alarms import raise_alarm
from ragstack_common.filters.tree import Operator
from ragstack_common.http import mcp
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.wrappers.reranked import RerankedBackend
from ragstack_common.services.catalogue import Corpora
from ragstack_common.settings import names
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document
from tests.support.mcp_text import text_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGES = ("ragstack_common", "local_bedrock", "ragstack_local")
BASES = ("", *PACKAGES, "ragstack_common/search", "infra")


def recipe(name: str) -> str:
    (found,) = re.findall(rf"^\*\*{name}\.\*\* (.*)$", PAGE, re.MULTILINE)
    return str(found)


def test_files_and_folders_exist() -> None:
    words = [word for span in re.findall(r"`([^`\n]+)`", PAGE) for word in span.split()]
    paths = [word for word in words if re.fullmatch(r"[\w.]+/[\w./]*", word)]
    paths = [path for path in paths if not re.search(r"\b[A-Z]{3,}\b(?!\.md)", path)]

    assert len(paths) > 80
    assert [path for path in paths if not any((ROOT / base / path).exists() for base in BASES)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("**/*.md")), ids=lambda page: page.name)
def test_source_files_named_in_documentation_exist(page: Path) -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"docs"}
    named = re.findall(
        r"`((?:[\w.-]+/)+[\w.-]*)`", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
    paths = [path for path in named if path.endswith(".py") or path.partition("/")[0] in folders]

    assert [path for path in paths if not path.startswith(".") and not (ROOT / path).exists()] == []


def test_make_has_the_named_targets() -> None:
    named = set(re.findall(r"`make (\w[\w-]*)", PAGE))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert named - targets == set()


def test_names_are_in_their_files() -> None:
    named = re.findall(r"`(\w+)`(?: in | \()`([\w/]+\.tsx?|[\w/]+\.py)`", PAGE)

    assert len(named) > 15
    assert [pair for pair in named if not re.search(rf"\b{pair[0]}\b", (ROOT / pair[1]).read_text())] == []


def test_every_package_has_a_place_in_the_table() -> None:
    table = PAGE.partition("## Where things are")[2].partition("| tests |")[0]
    packages = {path.parent.name for name in PACKAGES for path in (ROOT / name).glob("*/__init__.py")}

    assert {name for name in packages if f"{name}/" not in table} == set()


class Longest:
    """A toy reranker."""

    name = "longest"
    max_chunks = 100

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:  # noqa: ARG002
        return sorted(chunks, key=lambda chunk: -len(chunk.content))

    async def close(self) -> None:
        pass


def test_a_filter_operator_is_handled_where_the_recipe_says() -> None:
    members = "|".join(member.name for member in Operator)
    folder = ROOT / "ragstack_common/filters"
    files = {file.name for file in folder.glob("*.py") if re.search(rf"Operator\.({members})", file.read_text())}

    assert {name for name in files if name not in recipe("A filter operator")} == set()


@pytest.mark.xdist_group("synthesized stacks")  # they have a node
def test_an_alarm_needs_one_call() -> None:
    stack = Stack(App(), "Toy")
    metric = aws_cloudwatch.Metric(metric_name="Toys", namespace="RAGStack")

    raise_alarm(stack, "ToyAlarm", at_least=1, metric=metric, what_to_do="Tidy up.")

    (alarm,) = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    assert alarm["Properties"]["AlarmDescription"] == "Tidy up."


async def test_an_mcp_tool_is_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(*_: object) -> Corpora:
        return Corpora(corpora=[], complete=True)

    async def no_tools() -> list[dict[str, Any]]:
        return []

    toy = mcp._Operation("toy", "Toy", "Counts toys.", mcp.NoArguments, Corpora, count, lambda _: "No toys.")
    monkeypatch.setattr(mcp, "_OPERATIONS", {**mcp._OPERATIONS, "toy": toy})
    operations: Any = SimpleNamespace(tools=no_tools)

    async with Client(mcp.build_server(operations)) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("toy", {})

    assert listed[-1] == "toy"
    assert text_of(result) == "No toys."


async def test_a_reranker_is_an_entry_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{Longest.__module__}:{Longest.__name__}"
    monkeypatch.setitem(names.RERANKERS, "longest", names.RerankerEntry(place, "longest"))
    backend = InMemoryBackend([Document("1", "s3://b/1", "leave", {}), Document("2", "s3://b/2", "days of leave", {})])

    async with RerankedBackend(backend, "longest") as reranked:
        found = await reranked.retrieve("leave")

    assert [chunk.content for chunk in found] == ["days of leave", "leave"]
