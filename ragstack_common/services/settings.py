"""The settings in force, and where each of them comes from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from ragstack_common.settings.base import as_text
from ragstack_common.settings.ingestion import (
    FUNCTION_SETTINGS,
    HIDDEN,
    SET_BY_STACKS,
    WITH_SECRETS,
    DocumentApiSettings,
)

MAX_CHARACTERS: Final = 500
"""Longest value that is shown whole."""

_LINK: Final = re.compile(r"\[([^]]+)]\([^)]*\)")
"""A link to a page of the documentation, which the table of the settings has."""

Origin = Literal["default", "context", "settings file", "target", "environment"]


class SettingInForce(BaseModel, defer_build=True):
    """A setting, its value, and where that comes from."""

    name: str = Field(
        description="The variable of functions, such as SEARCH_K, or a choice of the stacks, such as auth"
    )
    value: str | None = Field(
        description=f"As it would be written; null for none. Long values are cut, and secrets are {HIDDEN}"
    )
    default: str | None = Field(description="The value that it would have otherwise; null for none")
    origin: Origin = Field(
        description="`context` of the deployment, its `settings file`, the `target` or the kind of knowledge base, the"
        " `environment` of the function that answers this request, or the `default`"
    )
    description: str | None


class SettingsInForce(BaseModel, defer_build=True):
    """The settings of the deployment."""

    settings: list[SettingInForce]


def settings_in_force(env: Mapping[str, str]) -> SettingsInForce:
    """List the settings that the deployment chose, and the defaults of all others; raises ConfigurationError.

    Names of resources are left out; values that may have a secret are hidden.
    """
    deployed: Mapping[Origin, Any] = DocumentApiSettings.from_env(env).settings_in_force or {}  # type: ignore[assignment]
    chosen = {name: (str(value), origin) for origin, values in deployed.items() for name, value in values.items()}
    variables = [*_variables(env, chosen)]
    known = {each.name for each in variables}
    own = [
        SettingInForce(name=name, value=_cut(value), default=None, origin=origin, description=None)
        for name, (value, origin) in sorted(chosen.items())
        if name not in known
    ]
    return SettingsInForce(settings=[*own, *variables])


def _variables(env: Mapping[str, str], chosen: Mapping[str, tuple[str, Origin]]) -> Iterator[SettingInForce]:
    fields = {name: field for model in FUNCTION_SETTINGS for name, field in model.variables().items()}
    for name, field in fields.items():
        if name in SET_BY_STACKS:
            continue
        default = _text(field.get_default(call_default_factory=True)) if not field.is_required() else None
        value, origin = chosen.get(name) or (env.get(name, "").strip(), "environment")
        is_default = not value
        value = HIDDEN if name in WITH_SECRETS else value
        yield SettingInForce(
            name=name,
            value=default if is_default else _cut(value),
            default=default,
            origin="default" if is_default else origin,
            description=field.description and _LINK.sub(r"\1", field.description),
        )


def _text(value: Any) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return as_text(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value)


def _cut(value: str) -> str:
    return value if len(value) <= MAX_CHARACTERS else f"{value[:MAX_CHARACTERS]}…"
