"""Write the tables of ``docs/CONFIGURATION.md`` from the models of the settings: ``python -m infra.configuration``."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo

from infra.layers import ROOT
from infra.options import SET_BY_STACKS, ContextValues
from ragstack_common.config import (
    DocumentApiSettings,
    IngestionSettings,
    PathSettings,
    QuerySettings,
    ReconcileSettings,
    RetrieverToolSettings,
    SearchSettings,
    Settings,
    TraceSettings,
    allowed_values,
)

PAGE: Final = ROOT / "docs" / "CONFIGURATION.md"

TABLES: Final[Mapping[str, type[Settings]]] = {
    "query function": QuerySettings,
    "retriever tool": RetrieverToolSettings,
    "tracing": TraceSettings,
    "ingestion path": PathSettings,
    "ingestion functions": IngestionSettings,
    "reconcile function": ReconcileSettings,
    "documents function": DocumentApiSettings,
    "context value": ContextValues,
}

LISTED_BEFORE: Final[Mapping[type[Settings], type[Settings]]] = {
    RetrieverToolSettings: SearchSettings,
    IngestionSettings: PathSettings,
    ReconcileSettings: PathSettings,
}
"""Settings that an earlier table has, and that the table of a model leaves out."""

_BLOCK: Final = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def updated(page: str) -> str:
    """Return the page with current tables between its markers."""
    return _BLOCK.sub(lambda block: block[1] + _table(block[2]) + block[3], page)


def _table(title: str) -> str:
    model = TABLES[title]
    fields = model.variables()
    if listed := LISTED_BEFORE.get(model):
        fields = {name: field for name, field in fields.items() if name not in listed.variables()}
    rows = [f"| {title} | default | allowed | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {_default(name, field)} | {allowed_values(field)} | {field.description} |"
        for name, field in fields.items()
    ]
    return "\n".join(rows) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    if name in SET_BY_STACKS:
        return "set by the stacks"
    default: Any = field.default
    if default in (None, (), {}, ""):
        return "none"
    if isinstance(default, bool):
        on, off = ("on", "off") if "on or off" in allowed_values(field) else ("true", "false")
        return f"`{on if default else off}`"
    return f"`{default}`"


def main(page: Path = PAGE) -> None:
    """Rewrite the tables of the page."""
    page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stderr.write(f"{page.relative_to(ROOT)} is up to date\n")


if __name__ == "__main__":
    main()
