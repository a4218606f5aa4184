"""The tools that the environment configures, run on the event loop of this process."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ragstack_common.deadline import wait_for
from ragstack_common.tools import Registry, answer, list_tools, registry_from_env


class Tools:
    """Lists tools and runs them. Each method raises ConfigurationError if a variable is invalid."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Keep the environment; the tools are made on first use."""
        self._env = env

    def list(self) -> dict[str, Any]:
        """Describe the tools."""
        return list_tools(self._registry)

    def run(self, name: str, body: object) -> tuple[int, dict[str, Any]]:
        """Run a tool.

        Args:
            name: The tool.
            body: ``{"input": {...}}``; None if the request had no body.

        Returns:
            The status and the answer, in the form of the tools' specification.
        """
        return wait_for(answer(self._registry, name, body))

    @cached_property
    def _registry(self) -> Registry:
        return registry_from_env(self._env)
