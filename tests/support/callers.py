"""Callers of APIs without authentication."""

from functools import cache

from ragstack_common.access.guard import Guard
from ragstack_common.access.identity import Callers, Identity
from ragstack_common.settings.access import AccessSettings, AuthKind


@cache
def open_callers() -> Callers:
    """Every caller is the operator of this machine."""
    return Callers(Identity(AccessSettings(api_auth=(AuthKind.NONE,))), Guard())
