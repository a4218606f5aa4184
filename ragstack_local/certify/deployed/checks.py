"""The checks of the deployed stacks."""

from collections.abc import Mapping
from typing import Final

from ragstack_local.certify.check import Check
from ragstack_local.certify.deployed import (
    console,
    documents,
    errors,
    operations,
    people,
    removal,
    searches,
    templates,
    untried,
)
from ragstack_local.certify.removal import Remove

CHECKS: Final[tuple[Check, ...]] = (
    *templates.CHECKS,
    *documents.CHECKS,
    *searches.CHECKS,
    *errors.CHECKS,
    *people.CHECKS,
    *console.CHECKS,
    *operations.CHECKS,
    *untried.CHECKS,
)

KINDS: Final[Mapping[str, Remove]] = removal.KINDS
"""How what these checks create is removed."""
