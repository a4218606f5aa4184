"""The modules for users are named, and the documentation uses no others."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from ragstack_common import PUBLIC

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IMPORT = re.compile(r"from (ragstack_common[\w.]*) import ([^\n(]+|\([^)]*\))")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_lists_its_names_and_explains_them(name: str) -> None:
    module = import_module(name)

    assert module.__doc__
    named = {each: getattr(module, each) for each in module.__all__}
    assert [each for each, value in named.items() if callable(value) and not value.__doc__] == []


def test_the_documentation_uses_only_public_names() -> None:
    found = [
        (page.name, module, name.strip())
        for page in PAGES
        for module, names in IMPORT.findall(page.read_text(encoding="utf-8"))
        for name in names.strip("()").split(",")
        if name.strip()
    ]

    assert len(found) > 20
    assert [each for each in found if each[1] not in PUBLIC or each[2] not in import_module(each[1]).__all__] == []
    mentioned = {
        match
        for page in PAGES
        for match in re.findall(r"\bragstack_common(?:\.[a-z_]+)+", page.read_text(encoding="utf-8"))
    }
    assert mentioned - {*PUBLIC} == set()
