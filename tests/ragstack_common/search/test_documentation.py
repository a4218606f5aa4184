"""What docs/RETRIEVAL.md says is true."""

import builtins
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core import errors
from ragstack_common.search import RetrievalBackend, factory
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend

PAGE = (Path(__file__).parents[3] / "docs" / "RETRIEVAL.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading, up to the next one of any level."""
    return PAGE.split(f"# {title}\n", 1)[1].split("\n#", 1)[0]


def types_in(config: Any) -> Iterator[str]:
    if isinstance(config, dict):
        if "type" in config:
            yield config["type"]
        for value in config.values():
            yield from types_in(value)
    elif isinstance(config, list):
        for value in config:
            yield from types_in(value)


def test_every_engine_and_every_wrapper_stands_in_a_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section("Choosing an engine") + section("Composing"), re.MULTILINE)

    assert set(rows) - {"type"} == set(factory._BUILT_IN)


def test_every_configuration_names_types_that_there_are() -> None:
    configs = [json.loads(code) for code in re.findall(r"```json\n(.*?)```", section("Composing"), re.DOTALL)]
    named = {name for config in configs for name in types_in(config)}

    assert named
    assert named <= set(factory._BUILT_IN)


def test_every_error_that_is_named_exists() -> None:
    named = set(re.findall(r"`(\w+Error)`", section("Errors")))

    assert {"InvalidFilterError", "MissingPackageError"} <= named
    assert [name for name in named if not hasattr(errors, name) and not hasattr(builtins, name)] == []


def test_the_methods_are_those_of_the_interface() -> None:
    rows = re.findall(r"^\| `(\w+)\(", section("The interface"), re.MULTILINE)
    public = {n for n, f in vars(RetrievalBackend).items() if inspect.isfunction(f) and not n.startswith("_")}

    assert set(rows) == public


@pytest.mark.parametrize(
    ("kind", "title", "left_out"), [(BedrockBackend, "Bedrock", {"metrics"}), (MultiSliceBackend, "Multislice", set())]
)
def test_the_arguments_of_a_backend_are_documented_with_their_defaults(
    kind: type[RetrievalBackend], title: str, left_out: set[str]
) -> None:
    documented = re.search(rf"`{kind.__name__}\((.*?)\)`", section(title))
    assert documented is not None
    wanted = [
        p.name if p.default is inspect.Parameter.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(kind).parameters.values()
        if p.name not in left_out
    ]

    assert [part for part in documented[1].split(", ") if part != "*"] == wanted
