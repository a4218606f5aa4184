"""Which addresses may get secrets."""

import pytest

from ragstack_common.core.addresses import is_here, keeps_secrets


@pytest.mark.parametrize(
    ("url", "is_local", "is_safe"),
    [
        ("https://search.example/prod", False, True),
        ("http://search.example/prod", False, False),
        ("http://127.0.0.1:4566/prod", True, True),
        ("http://LOCALHOST:4566", True, True),
        ("http://[::1]:4566", True, True),
        ("http://127.0.0.1.evil.example", False, False),
        ("http://127.0.0.1@evil.example", False, False),
        ("http://localhost.evil.example", False, False),
        ("http://192.168.1.7:4566", False, False),
        ("file://localhost/etc/passwd", True, False),
        ("ftp://search.example", False, False),
        ("http://[", False, False),
        ("", False, False),
    ],
)
def test_secrets_go_to_this_machine_or_over_https(url: str, *, is_local: bool, is_safe: bool) -> None:
    assert (is_here(url), keeps_secrets(url)) == (is_local, is_safe)
