"""The functions behind HTTP, as in the tests of their services."""

from tests.ragstack_common.services.conftest import account, ask, aws, call, clients, show

__all__ = ["account", "ask", "aws", "call", "clients", "show"]
