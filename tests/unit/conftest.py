"""Unit tests talk to nothing but this machine."""

import pytest
from pytest_socket import disable_socket, socket_allow_hosts


@pytest.fixture(autouse=True)
def only_this_machine() -> None:
    disable_socket(allow_unix_socket=True)
    socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
