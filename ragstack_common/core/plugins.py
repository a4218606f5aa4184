"""Classes that are imported by name: those of this package, and those of other packages by their entry points."""

import importlib
from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from ragstack_common.core.errors import ConfigurationError, MissingPackageError, needs_extra


@cache
def third_parties(group: str) -> Mapping[str, str]:
    """Return the entry points of a group, which other packages define: their places by their names."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and seldom needed

    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=group)}


def imported(place: str, extra: str | None, feature: str) -> Any:
    """Import a *feature*, as messages call it, from a place such as ``package.module:Class``.

    The extra is None for another package.

    Raises:
        MissingPackageError: A package is not installed.
        ConfigurationError: The place does not exist.
    """
    module, _, attribute = place.partition(":")
    try:
        with needs_extra(extra, feature):
            return attrgetter(attribute)(importlib.import_module(module))
    except MissingPackageError:
        raise
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{feature} cannot be imported: {error}") from error
