"""The provider's metadata decides which hosts the console may call."""

from typing import Any

import pytest

from infra.discovery import token_endpoint

GOOGLE = "https://accounts.google.com"


def test_the_token_endpoint_can_be_on_another_host() -> None:
    asked: list[str] = []

    def read(url: str) -> Any:
        asked.append(url)
        return {"issuer": GOOGLE, "token_endpoint": "https://oauth2.googleapis.com/token"}

    assert token_endpoint(GOOGLE, read) == "https://oauth2.googleapis.com/token"
    assert asked == [f"{GOOGLE}/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    "answer",
    [
        OSError("no route to host"),
        ValueError("no JSON"),
        {},
        [],
        None,
        {"token_endpoint": 7},
        {"token_endpoint": "http://a/"},
    ],
)
def test_synthesis_goes_on_without_metadata_and_says_so(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def read(_: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert token_endpoint("https://login.example.com/", read) is None
    assert "the metadata of https://login.example.com/ cannot be read" in capsys.readouterr().err
