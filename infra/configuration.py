"""Write the tables of ``docs/CONFIGURATION.md`` from the models of the settings: ``python -m infra.configuration``."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo

from infra.context_values import ContextValues
from infra.layers import ROOT
from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import Settings, allowed_values
from ragstack_common.settings.conversations import ConversationSettings
from ragstack_common.settings.gaps import GapSettings
from ragstack_common.settings.ingestion import (
    SET_BY_STACKS,
    DocumentApiSettings,
    IngestionSettings,
    ReconcileSettings,
    ViewerSettings,
)
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings
from ragstack_common.settings.tracing import TraceSettings

PAGE: Final = ROOT / "docs" / "CONFIGURATION.md"

TABLES: Final[Mapping[str, tuple[type[Settings], ...]]] = {
    "search variable": (QuerySettings, RetrieverToolSettings),
    "answer variable": (AnswerSettings, ConversationSettings, GapSettings),
    "ingestion variable": (IngestionSettings, ReconcileSettings, DocumentApiSettings, ViewerSettings),
    "tracing variable": (TraceSettings,),
    "access variable": (AccessSettings,),
    "context value": (ContextValues,),
}

_NUMBER: Final = re.compile("^a (?:whole )?number from ")
_BLOCK: Final = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def updated(page: str) -> str:
    """Return the page with current tables between its markers."""
    return _BLOCK.sub(lambda block: block[1] + _table(block[2]) + block[3], page)


def _table(title: str) -> str:
    known = (entry for model in TABLES[title] for entry in model.variables().items())
    fields = {name: field for name, field in known if name not in SET_BY_STACKS}
    rows = [f"| {title} | default | allowed | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {_default(field)} | {_NUMBER.sub('', allowed_values(field))} | {field.description} |"
        for name, field in fields.items()
    ]
    return "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    default: Any = field.default
    if default in (None, (), {}, ""):
        return "none"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    if is_dataclass(default) and not isinstance(default, type):
        return f"`{json.dumps(asdict(default))}`"
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
