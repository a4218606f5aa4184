"""The local issuer in this process, with tokens that expire when a test wants it."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import time

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ragstack_local.signin.provider import ClientRegistration, Provider
from ragstack_local.stack.issuer import CLIENT
from ragstack_local.stack.issuer_app import create_issuer
from tests.support.asgi_server import asgi_server
from tests.support.ports import free_ports

APPLICATION = ClientRegistration(CLIENT, (CLIENT,))


@dataclass
class Clock:
    """The issuer's clock."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time() + self.ahead


@pytest.fixture(scope="package")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(key: rsa.RSAPrivateKey, clock: Clock) -> Iterator[str]:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with asgi_server(create_issuer(url, key, origins=["http://localhost:5173"], clock=clock), port):
        yield url


@pytest.fixture
def provider(issuer: str) -> Provider:
    return Provider.discover(issuer)
