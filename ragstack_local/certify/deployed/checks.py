"""The checks of the deployed stacks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ragstack_local.certify.check import Check
from ragstack_local.certify.deployed import (
    console,
    documents,
    errors,
    kept,
    operations,
    people,
    removal,
    searches,
    templates,
)
from ragstack_local.certify.deployed.deployment import SECONDS
from ragstack_local.certify.deployed.untried import CHECKS as UNTRIED
from ragstack_local.certify.removal import Remove
from ragstack_local.certify.runner import LIMITS

TOPICS: Final = (
    templates.DEPLOYMENT,
    documents.UPLOADS,
    documents.DOCUMENTS,
    searches.SEARCH,
    searches.ANSWERS,
    errors.API,
    people.SIGN_IN,
    people.LABELS,
    kept.KEPT,
    console.CONSOLE,
    operations.FAILURES,
    operations.ALARMS,
    operations.RECONCILIATION,
    operations.DOCTOR,
    errors.LIMITS_OF_API,
    operations.LOGS,
    templates.POLICIES,
    templates.CHANGES,
)

LAST: Final = operations.LOGS.checks
"""They look at what all others have left in the logs."""

CHECKS: Final[tuple[Check, ...]] = (
    *(
        replace(check, seconds=SECONDS, topic=LIMITS if check in LAST else check.topic)
        for topic in TOPICS
        for check in topic.checks
    ),
    *UNTRIED,
)

KINDS: Final[Mapping[str, Remove]] = removal.KINDS
"""How what these checks create is removed."""
