"""Parses botocore's models once per process: tests make hundreds of clients, each in a new session."""

from functools import cache
from typing import Any

from botocore.loaders import JSONFileLoader

_load = JSONFileLoader.load_file


@cache
def _loaded(path: str) -> Any:
    return _load(JSONFileLoader(), path)


def parse_models_once() -> None:
    JSONFileLoader.load_file = lambda _, file_path: _loaded(file_path)  # type: ignore[method-assign]
