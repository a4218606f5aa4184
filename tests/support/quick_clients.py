"""Reads botocore's models once per process: tests make hundreds of clients, each in a new session."""

from functools import cache
from typing import Any

from botocore import useragent
from botocore.loaders import JSONFileLoader, Loader

_load = JSONFileLoader.load_file
_list = Loader.list_available_services


@cache
def _loaded(path: str) -> Any:
    return _load(JSONFileLoader(), path)


@cache
def _listed(search_paths: tuple[str, ...], type_name: str) -> list[str]:
    loader = Loader(extra_search_paths=[*search_paths], include_default_search_paths=False)
    return list(_list(loader, type_name))


def parse_models_once() -> None:
    """Patch botocore in this process."""
    JSONFileLoader.load_file = lambda _, file_path: _loaded(file_path)  # type: ignore[assignment, method-assign]
    Loader.list_available_services = lambda self, type_name: _listed(tuple(self.search_paths), type_name)  # type: ignore[method-assign]
    # Each request describes Python and the machine again, letter by letter.
    useragent.sanitize_user_agent_string_component = cache(useragent.sanitize_user_agent_string_component)
