"""The tools that the environment configures, run on the event loop of this process."""

from collections.abc import Mapping
from typing import Any

from ragstack_common.api.query.event_loop import wait_for
from ragstack_common.tools import Registry, registry_from_env
from ragstack_common.tools.http import answer, list_tools


class Tools:
    """Lists tools and runs them. Each method raises ConfigurationError if a variable is unusable."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Keep the environment; the tools are made when first asked for."""
        self._env = env
        self._made: Registry | None = None

    def list(self) -> dict[str, Any]:
        """Describe the tools."""
        return list_tools(self._registry())

    def run(self, name: str, body: object) -> tuple[int, dict[str, Any]]:
        """Run a tool.

        Args:
            name: The tool.
            body: ``{"input": {...}}``; None if the request had no body.

        Returns:
            The status and the answer, in the form of the tools' own interface.
        """
        return wait_for(answer(self._registry(), name, body))

    def _registry(self) -> Registry:
        if self._made is None:
            self._made = registry_from_env(self._env)
        return self._made
