"""Who may do and see what: callers, the access file, its changes, and the check of every result.

Start with ``callers`` and ``policy``; ``guard`` is what services ask. Tenants are here, too.
"""

from ragstack_common.access.callers import OPERATOR, Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import AccessRules

__all__ = ["OPERATOR", "AccessPolicy", "AccessRules", "Caller", "Guard", "Right"]
