"""The tools that the environment configures, for a function that gets a request's body as text."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from ragstack_common.errors import ConfigurationError
from ragstack_common.query.event_loop import wait_for
from ragstack_common.tools import Registry, registry_from_env
from ragstack_common.tools.http import answer, list_tools

Answer = tuple[int, dict[str, Any]]


class Tools:
    """Lists tools and runs them, on the loop of this process. Its answers have the form of the tools' own interface."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Keep the environment; the tools are made when first asked for."""
        self._env = env
        self._made: Registry | None = None

    def list(self) -> Answer:
        """Describe the tools."""
        try:
            return HTTPStatus.OK.value, list_tools(self._registry())
        except ConfigurationError as error:
            return _failed(error)

    def run(self, name: str, body: str | None) -> Answer:
        """Run a tool.

        Args:
            name: The tool.
            body: ``{"input": {...}}`` as JSON; None where it is no text.
        """
        try:
            parsed = json.loads(body or "")
        except ValueError:
            parsed = None
        try:
            return wait_for(answer(self._registry(), name, parsed))
        except ConfigurationError as error:
            return _failed(error)

    def _registry(self) -> Registry:
        if self._made is None:
            self._made = registry_from_env(self._env)
        return self._made


def _failed(error: ConfigurationError) -> Answer:
    return HTTPStatus.INTERNAL_SERVER_ERROR.value, {"success": False, "error": str(error)}
