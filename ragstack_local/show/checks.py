"""Checks that run one after the other, each shown as soon as it has ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from botocore.exceptions import BotoCoreError, ClientError
from rich.text import Text

from ragstack_common.core.errors import RagStackError
from ragstack_local.show import display

Status = Literal["ok", "warning", "failed", "skipped"]


class CheckError(Exception):
    """A check found something wrong; the message says what."""

    def __init__(self, message: str, status: Status = "failed", advice: str | None = None) -> None:
        super().__init__(message)
        self.status: Status = status
        self.advice = advice


@dataclass
class Check:
    """The outcome of one check: what was found, and what to do about it."""

    name: str
    status: Status = "ok"
    found: str = ""
    advice: str | None = None
    seconds: float = 0.0


@dataclass
class Checks:
    """Runs checks, and shows each as soon as it has ended."""

    show: Callable[[Check], None]
    done: list[Check] = field(default_factory=list)

    @property
    def are_healthy(self) -> bool:
        """Whether none failed."""
        return all(check.status != "failed" for check in self.done)

    def run(self, name: str, work: Callable[[], str], advice: str) -> bool:
        """Run a check, which returns what it found; an error makes it fail. Returns whether it did not."""
        check, start = Check(name), time.monotonic()
        try:
            check.found = work()
        except CheckError as error:
            check.status, check.found, check.advice = error.status, str(error), error.advice or advice or None
        except (RagStackError, ClientError, BotoCoreError, OSError) as error:
            check.status, check.found, check.advice = "failed", " ".join(str(error).split()), advice
        check.seconds = round(time.monotonic() - start, 1)
        self._end(check)
        return check.status != "failed"

    def skip(self, why: str, *names: str) -> None:
        """Report checks that could not be run."""
        for name in names:
            self._end(Check(name, "skipped", why))

    def _end(self, check: Check) -> None:
        self.done.append(check)
        self.show(check)


def print_check(check: Check) -> None:
    """Print a check, in one or two lines."""
    styles = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
    line = Text.assemble((f"{check.status:8}", styles[check.status]), f" {check.name}: {check.found}")
    if check.seconds:
        line.append(f"  {check.seconds:g} s", "dim")
    display.console.print(line, soft_wrap=True)
    if check.advice:
        display.console.print(Text(f"         {check.advice}", "yellow"), soft_wrap=True)
