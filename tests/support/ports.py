"""Free ports for servers that cannot choose one themselves."""

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Below those that Linux and macOS give to connections."""


def free_ports(count: int) -> list[int]:
    """Find ports without a listener, outside the range that the system gives to outgoing connections."""
    found: list[int] = []
    while len(found) < count:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found = [*dict.fromkeys([*found, port])]
    return found
