"""Environment variables read with a check, for the settings objects."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from ragstack_common.errors import ConfigurationError

T = TypeVar("T")


def required(env: Mapping[str, str], name: str) -> str:
    """Return a variable that must be there, without blanks around it.

    Raises:
        ConfigurationError: It is missing.
    """
    value = env.get(name, "").strip()
    if not value:
        raise ConfigurationError(f"{name} is not set: give the function this environment variable")
    return value


def optional(env: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    """Return a variable as *parse* reads it, or the default where it is missing or empty.

    Raises:
        ConfigurationError: *parse* raised ValueError; the message names the variable.
    """
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        return parse(text)
    except ValueError as error:
        # Python's own messages quote the value, which may be a secret: callers of the API read this one.
        problem = "it is not a number" if text in str(error) else error
        raise ConfigurationError(f"{name} is unusable: {problem}") from error


def positive(number: Callable[[str], T]) -> Callable[[str], T]:
    """Read a finite number over 0."""

    def parse(text: str) -> T:
        value = number(text)
        if not value > 0 or value == float("inf"):  # type: ignore[operator]
            raise ValueError("it must be greater than 0")
        return value

    return parse


def not_negative(number: Callable[[str], T]) -> Callable[[str], T]:
    """Read a finite number of 0 or more."""

    def parse(text: str) -> T:
        value = number(text)
        if not value >= 0 or value == float("inf"):  # type: ignore[operator]
            raise ValueError("it must be 0 or more")
        return value

    return parse


def boolean(text: str) -> bool:
    """Read true or false."""
    try:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError("write true or false") from None
