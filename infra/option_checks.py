"""Reading context values one by one, and what is said of those that are unusable."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

E = TypeVar("E", bound=StrEnum)

Check = Callable[[str], str]
"""Returns a value as it is used, or raises ValueError with what to write."""

OFF: Final = "off"


class OptionError(ValueError):
    """A context value is missing, unknown or unusable; the message is one line that says what to write."""


def choice(values: Mapping[str, str], name: str, kind: type[E], default: E) -> E:
    """Read one of a few words."""
    text = values.get(name)
    if not text:
        return default
    try:
        return kind(text)
    except ValueError:
        raise OptionError(f"{name}={text} is unknown: choose {' or '.join(kind)}") from None


def checked(values: Mapping[str, str], name: str, check: Check) -> str | None:
    """Read a value that a check accepts; None if it is not given."""
    text = values.get(name)
    if not text:
        return None
    try:
        return check(text)
    except ValueError as error:
        raise OptionError(f"{name}={text} is unusable: {error}") from None


def number(low: float, high: float, *, whole: bool = False) -> Check:
    """A check that a text is a number from *low* to *high*."""

    def check(text: str) -> str:
        explanation = f"write a {'whole ' if whole else ''}number from {low:g} to {high:g}"
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(explanation) from None
        if not low <= value <= high:
            raise ValueError(explanation)
        return text

    return check


def one_of(*choices: str) -> Check:
    """A check that a text is one of *choices*, in small letters or capitals."""

    def check(text: str) -> str:
        for each in choices:
            if text.lower() == each.lower():
                return each
        raise ValueError(f"choose {' or '.join(choices)}")

    return check


def as_written(read: Callable[[str], object]) -> Check:
    """A check by a setting's own reader; the text stays as it is."""

    def check(text: str) -> str:
        read(text)
        return text

    return check


def matching(pattern: str, explanation: str) -> Check:
    """A check that a text has a form."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(explanation)
        return text

    return check


def url(text: str) -> str:
    """Check the base URL of a local service."""
    return matching(r"https?://[^/\s]+/?", "write it as http://HOST:PORT")(text).rstrip("/")


def existing_file(text: str) -> str:
    """Check that a file is there; its path becomes absolute."""
    path = Path(text).resolve()
    if not path.is_file():
        raise ValueError("there is no such file")
    return str(path)


bedrock_id: Final = matching(r"[0-9a-zA-Z]{10}", "an id has ten letters or digits")
"""Source: bedrock-agent, shape Id."""

topic_arn: Final = matching(
    r"arn:aws(-[a-z-]+)?:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}", "write the ARN of an SNS topic"
)
"""Source: SNS API reference, CreateTopic. A FIFO topic, whose name ends in .fifo, takes no alarms."""

email: Final = matching(r"[^@\s]+@[^@\s]+\.[^@\s]+", "write an e-mail address")

prefix: Final = matching(r"[A-Za-z][A-Za-z0-9-]{0,39}", "write a letter, then at most 39 letters, digits or hyphens")

event_bus_name: Final = matching(r"[/.\-_A-Za-z0-9]{1,256}", "write the name of an event bus, not its ARN")
"""Source: events, shape EventBusName."""

schedule: Final = matching(
    rf"cron\((\S+ ){{5}}\S+\)|rate\((1 (minute|hour|day)|([2-9]|[1-9]\d+) (minutes|hours|days))\)|{OFF}",
    f"write cron(MINUTE HOUR DAY MONTH WEEKDAY YEAR), rate(NUMBER UNIT) or {OFF}",
)
"""Source: EventBridge user guide, schedule expressions."""
