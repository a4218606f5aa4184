"""docs/TOOLS.md matches the code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.tools import RetrieverSettings, Tool
from ragstack_common.tools.schemas import INPUT_SCHEMA, RetrieverRequest

PAGE = (Path(__file__).parents[3] / "docs" / "TOOLS.md").read_text(encoding="utf-8")


def first_column(header: str) -> set[str]:
    lines = PAGE[PAGE.index(f"| {header} |") :].splitlines()[2:]
    rows = lines[: next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return {re.findall(r"`([^`]+)`", row)[0] for row in rows}


def test_exactly_the_members_of_the_input_are_documented() -> None:
    assert first_column("member | type") == set(INPUT_SCHEMA["properties"])


@pytest.mark.parametrize("body", re.findall(r"/tools/retriever.*? -d '(.*?)'$", PAGE, flags=re.DOTALL | re.MULTILINE))
def test_the_examples_of_requests_are_valid(body: str) -> None:
    request = RetrieverRequest.parse(json.loads(body.replace("'\"$KNOWLEDGE_BASE_ID\"'", "handbook"))["input"])

    assert request.collection_name == "handbook"


def test_the_example_of_collections_is_valid() -> None:
    (example,) = (block for block in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL) if '"type"' in block)

    chosen = RetrieverSettings.from_env({"RETRIEVER_TOOL_COLLECTIONS": example}).collections

    keys = {name: collection.partition_key for name, collection in chosen.items()}
    assert keys == {"handbook": "corpus", "notes": "folder", "papers": None}


@pytest.mark.parametrize("name", ["name", "description", "input_schema", "output_schema", "run", "close"])
def test_the_members_of_a_tool_are_documented(name: str) -> None:
    members: Any = {*Tool.__annotations__, *vars(Tool)}

    assert name in members
    assert f"`{name}`" in PAGE or f"`async {name}(" in PAGE
