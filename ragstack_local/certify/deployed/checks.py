"""The checks of the deployed stacks."""

from collections.abc import Mapping
from typing import Final

from ragstack_local.certify.check import Check
from ragstack_local.certify.removal import Remove

CHECKS: Final[tuple[Check, ...]] = ()

KINDS: Final[Mapping[str, Remove]] = {}
"""How what these checks create is removed."""
