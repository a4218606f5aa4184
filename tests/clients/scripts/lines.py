"""Requests as lines of JSON in, answers as lines of JSON out: how the tests speak with a client's process."""

import json
import sys
from collections.abc import Callable
from typing import Any


def serve(**functions: Callable[..., Any]) -> None:
    """Answer each line ``{"call": name, ...}`` with ``{"result": ...}`` or ``{"error": message}``."""
    answers, sys.stdout = sys.stdout, sys.stderr  # What a client prints is no answer.
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": functions[request.pop("call")](**request)}
        except Exception as error:  # noqa: BLE001 - the test judges it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), file=answers, flush=True)
