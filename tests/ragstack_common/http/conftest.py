"""The functions behind HTTP, as in the tests of their services."""

from tests.ragstack_common.services.conftest import ask, aws, call, clients, show

__all__ = ["ask", "aws", "call", "clients", "show"]
