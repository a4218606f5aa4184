"""How settings are read from variables, checked and described."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import AliasChoices, AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.names import canonical_if_text


@dataclass(frozen=True)
class Allowed:
    """What messages and documentation say of the values of an annotated type."""

    text: str


def separated_names(value: Any) -> tuple[str, ...]:
    """Read names that are separated by commas; a sequence stays as it is."""
    parts = (part.strip() for part in value.split(",")) if isinstance(value, str) else value
    names = tuple(map(canonical_if_text, parts))
    if "" in names:
        raise ValueError("names must be separated by one comma each")
    return names


def json_object(value: Any) -> dict[str, Any]:
    """Read a JSON object from text, or return an object as it is; raises ValueError."""
    if isinstance(value, str):
        if "\0" in value or "\\u0000" in value:
            raise ValueError("it must be a JSON object without the character NUL")
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"it must be a JSON object: {error}") from error
        except RecursionError:
            raise ValueError("it must be a JSON object with fewer levels") from None
    if not isinstance(value, Mapping):
        raise ValueError("it must be a JSON object")  # noqa: TRY004 - the text is unusable, whatever type it spells
    return dict(value)


MAX_SHOWN: Final = 200
"""Maximum length of an invalid value in a message."""

COMMENT: Final = "//"
"""Name of a member of a settings file that programs ignore."""

TARGETS: Final = (Path("targets"), Path("backend/targets"))
"""The folders of files of settings that have a name: a target. Source: specification 002, for the second one."""

LINES_SUFFIX: Final = ".txt"
"""Suffix of a file of settings with lines as in an environment, ``SEARCH_K=15``; others are JSON."""


def target_file(name: str) -> Path:
    """Return the file of a target, in the first folder that has it."""
    files = [folder / f"{name}{LINES_SUFFIX}" for folder in TARGETS]
    return next((file for file in files if file.is_file()), files[0])


def read_settings(file: Path) -> dict[str, Any]:
    """Read a file of settings by the names of context values, which are those of variables in lower case.

    A file NAME.txt has a line ``SEARCH_K=15`` for each; blank lines and lines with a # are comments. Another file is a
    JSON object, such as ``ragstack eval relevance --calibrate`` makes.

    Raises:
        ValueError: The file cannot be read, or has another form.
    """
    try:
        text = file.read_text(encoding="utf-8")
        found = _read_lines(text) if file.suffix == LINES_SUFFIX else json_object(text)
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{file} is not a file of settings: {error}") from error
    return {name: value for name, value in found.items() if name != COMMENT}


def _read_lines(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if "\0" in line:
            raise ValueError(f"line {number} has the character NUL, which no value can have")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not (name and equals):
            raise ValueError(f"line {number} is not NAME=VALUE, such as SEARCH_K=15")
        if name.lower() in found:
            raise ValueError(f"line {number} sets {name} again")
        found[name.lower()] = value
    return found


def write_settings(file: Path, changes: Mapping[str, Any], comment: str) -> None:
    """Change some values in a file of settings, or make a new one with a comment about their source.

    Raises:
        ValueError: The file exists, and is not a file of settings.
    """
    kept = {**(read_settings(file) if file.exists() else {}), **changes}
    if file.suffix == LINES_SUFFIX:
        lines = [f"# {comment}", *(f"{name.upper()}={as_text(value)}" for name, value in kept.items())]
        text = "\n".join(lines)
    else:
        text = json.dumps({COMMENT: comment, **kept}, indent=2)
    file.write_text(f"{text}\n", encoding="utf-8")


def as_text(value: Any) -> str:
    """Write a value as the command line would give it."""
    return json.dumps(value) if isinstance(value, Mapping | bool) else str(value).strip()


class Settings(BaseModel):
    """Settings that are read by name. The variable of a field is its name in capitals, or its validation alias."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=str.upper),
        allow_inf_nan=False,
        defer_build=True,  # a function builds the models that it reads, and no others
        frozen=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
        validate_by_name=True,
    )

    @classmethod
    def variables(cls) -> dict[str, FieldInfo]:
        """Return the fields by the names of their variables; a field that has two names is listed twice."""
        found = {}
        for name, field in cls.model_fields.items():
            alias = field.validation_alias or cls._variable(name)
            for variable in alias.choices if isinstance(alias, AliasChoices) else [alias]:
                found[str(variable)] = field
        return found

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the settings; a blank variable counts as not set; raises ConfigurationError."""
        given = {name: text for name in cls.variables() if (text := env.get(name, "").strip())}
        try:
            return cls.model_validate(given, by_name=False)
        except ValidationError as error:
            problems = cls._explained(error, given)
            raise ConfigurationError("; ".join(f"{name}{problem}" for name, problem in problems.items())) from error

    @classmethod
    def problems(cls, given: Mapping[str, str]) -> dict[str, str]:
        """Check some variables; return what is wrong with each, in words that follow its name."""
        try:
            cls.model_validate(given, by_name=False)
        except ValidationError as error:
            found = cls._explained(error, given)
            return {name: problem for name, problem in found.items() if name in given or not name}
        return {}

    @classmethod
    def _variable(cls, field_name: str) -> str:
        return field_name.upper()

    @classmethod
    def _explained(cls, error: ValidationError, given: Mapping[str, str]) -> dict[str, str]:
        problems: dict[str, str] = {}
        for each in error.errors(include_url=False):
            reason = str(each["ctx"]["error"]) if each["type"] == "value_error" else None
            name = str(each["loc"][0]) if each["loc"] else ""
            if not name:
                problems[name] = reason or each["msg"]
            elif each["type"] == "missing":
                problems[name] = " is not set"
            else:
                field = cls.variables()[name]
                # Callers of the API can read this message.
                value = f"={given[name]:.{MAX_SHOWN}}" if field.repr else ""
                problems[name] = f"{value} is invalid: {reason or f'it must be {allowed_values(field)}'}"
        return problems


def allowed_values(field: FieldInfo) -> str:
    """Describe the values that a field takes, in words that follow "it must be"."""
    return _allowed(field.annotation, field.metadata)


def _allowed(annotation: Any, metadata: Any) -> str:
    for each in metadata:
        if isinstance(each, Allowed):
            return each.text
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _allowed(inner, [*metadata, *more])
    if get_origin(annotation) is Literal:
        return " or ".join(get_args(annotation))
    if optional := [each for each in get_args(annotation) if each is not NoneType]:
        return _allowed(optional[0], metadata)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return " or ".join(annotation)
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        low, high = (next((getattr(m, kind) for m in metadata if hasattr(m, kind)), None) for kind in ("ge", "le"))
        return f"a {'whole ' if annotation is int else ''}number from {low:,} to {high:,}"
    return "text"


UPPER_CASE: Final = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)
LOWER_CASE: Final = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)

BusName = Annotated[str, Field(pattern=r"^[/.\-_A-Za-z0-9]{1,256}$"), Allowed("the name of an event bus")]
"""Source: events, shape EventBusName."""

JsonObject = Annotated[dict[str, Any], BeforeValidator(json_object), Allowed("a JSON object")]

SecretArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}$"),
    Allowed("the whole ARN of a secret, with the six characters at its end"),
]
"""Source: secretsmanager, shape SecretARNType."""
