"""All checks, and how all that they create is removed."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from ragstack_local.certify import removal
from ragstack_local.certify.check import Check
from ragstack_local.certify.deployed.checks import CHECKS as OF_STACKS
from ragstack_local.certify.deployed.checks import KINDS as KINDS_OF_STACKS
from ragstack_local.certify.services.account import CHECKS as OF_ACCOUNT
from ragstack_local.certify.services.filters import CHECKS as OF_FILTERS
from ragstack_local.certify.services.ingestion import CHECKS as OF_INGESTION
from ragstack_local.certify.services.limits import CHECKS as OF_LIMITS
from ragstack_local.certify.services.managed_access import CHECKS as OF_MANAGED_ACCESS
from ragstack_local.certify.services.managed_filters import CHECKS as OF_MANAGED_FILTERS
from ragstack_local.certify.services.managed_search import CHECKS as OF_MANAGED
from ragstack_local.certify.services.retrieval import CHECKS as OF_RETRIEVAL
from ragstack_local.certify.services.vectors import CHECKS as OF_VECTORS
from ragstack_local.certify.services.words import CHECKS as OF_WORDS

SERVICES: Final[tuple[Check, ...]] = (
    *OF_VECTORS,
    *OF_WORDS,
    *OF_FILTERS,
    *OF_INGESTION,
    *OF_RETRIEVAL,
    *OF_MANAGED,
    *OF_MANAGED_FILTERS,
    *OF_MANAGED_ACCESS,
    *OF_ACCOUNT,
    *OF_LIMITS,
)

CHECKS: Final[tuple[Check, ...]] = (*SERVICES, *OF_STACKS)

KINDS: Final[Mapping[str, removal.Remove]] = {**removal.KINDS, **KINDS_OF_STACKS}


def chosen(patterns: tuple[str, ...]) -> list[Check]:
    """Return the checks whose name or topic matches a pattern, such as ``filters.*``; all without a pattern."""
    return [
        check
        for check in CHECKS
        if not patterns or any(fnmatchcase(text, each) for each in patterns for text in (check.name, check.topic))
    ]
