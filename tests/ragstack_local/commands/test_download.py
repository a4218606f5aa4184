"""``ragstack download``, against a server that answers as the API and the bucket do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ragstack_local.api.calls import run as awaited
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.cli import app
from ragstack_local.connection.address import Address
from ragstack_local.errors import ApiError
from tests.ragstack_local.support import Api, serving_api

ID = "0" * 32
FILE = b"Thirty days of leave."

Download = Callable[..., Result]


@pytest.fixture
def download(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Download:
    """Download a document, in a folder of its own, from a bucket that sends the file."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str | Path, name: str = "leave.md", content: Any = FILE, **headers: str) -> Result:
        with serving_api() as bucket:
            bucket.will_answer(200, content, **headers)
            api.will_answer(
                200,
                {"url": f"{bucket.url}/leave", "name": name, "size": len(FILE), "expires_at": "2026-07-01T00:00:00Z"},
            )
            return CliRunner().invoke(app, ["download", ID, *map(str, arguments), "--api-url", api.url])

    return invoke


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_file_is_saved_in_the_current_folder_under_its_name(download: Download, tmp_path: Path) -> None:
    done = download()

    assert (done.exit_code, done.stdout) == (0, "Wrote 21 bytes to leave.md\n"), done.output
    assert files(tmp_path) == {"leave.md": FILE}


def test_a_file_that_exists_is_replaced_with_force_alone(download: Download, api: Api, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text("mine")

    by_its_name, named = download(), download("--to", "leave.md")
    kept = files(tmp_path)
    forced = download("--force")

    assert (by_its_name.exit_code, named.exit_code, forced.exit_code) == (2, 2, 0), forced.output
    assert "leave.md exists already: replace it with --force" in " ".join(named.output.split())
    assert kept == {"leave.md": b"mine"}
    assert files(tmp_path) == {"leave.md": FILE}
    assert len(api.requests) == 2  # nothing was asked for the named one


def test_a_file_that_is_written_during_the_download_is_not_replaced(
    download: Download, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = HttpOperations.download

    async def slow(self: HttpOperations, url: str, file: Any) -> int:
        (tmp_path / "leave.md").write_text("mine")
        return await whole(self, url, file)

    monkeypatch.setattr(HttpOperations, "download", slow)

    assert download().exit_code == 2
    assert files(tmp_path) == {"leave.md": b"mine"}


@pytest.mark.parametrize("arguments", [(), ("--force",)], ids=str)
def test_a_download_that_breaks_off_leaves_what_was_there(
    download: Download, api: Api, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    before = {"leave.md": b"mine"} if arguments else {}
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with serving_api() as bucket:
        bucket.headers, bucket.pieces = {"Content-Length": "1000"}, [FILE]
        api.will_answer(
            200, {"url": bucket.url, "name": "leave.md", "size": 1000, "expires_at": "2026-07-01T00:00:00Z"}
        )
        done = CliRunner().invoke(app, ["download", ID, *arguments, "--api-url", api.url])

    assert isinstance(done.exception, ApiError)
    assert "The download failed" in str(done.exception)
    assert files(tmp_path) == before


def test_a_bucket_that_refuses_is_an_error_and_nothing_is_written(download: Download, api: Api, tmp_path: Path) -> None:
    with serving_api() as bucket:
        bucket.will_answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        api.will_answer(200, {"url": bucket.url, "name": "leave.md", "size": 21, "expires_at": "2026-07-01T00:00:00Z"})
        done = CliRunner().invoke(app, ["download", ID, "--to", "-", "--api-url", api.url])

    assert "The bucket answered 403" in str(done.exception)
    assert done.stdout == ""
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("../../leave.md", "leave.md"),
        ("/etc/leave.md", "leave.md"),
        ("a\nb\x1b[2J.md", "a_b_[2J.md"),
        ("..", None),
        ("", None),
    ],
)
def test_a_name_of_the_api_leads_to_no_other_folder(
    download: Download, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, saved: str | None
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    done = download(name=name)

    assert done.exit_code == (2 if saved is None else 0), done.output
    assert files(tmp_path) == ({} if saved is None else {f"here/{saved}": FILE})


def test_bytes_go_to_the_standard_output_as_they_are(download: Download, tmp_path: Path) -> None:
    """Also those of a file that says it is compressed."""
    content = bytes(range(256))

    done = download("--to", "-", content=content, **{"Content-Encoding": "gzip"})

    assert done.stdout_bytes == content
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--to", "-", "--json"), "the file cannot be written between JSON"),
        (("--to", "nowhere/leave.md"), "there is no folder nowhere"),
        (("--to", "/dev/null", "--force"), "/dev/null is not a file"),
    ],
    ids=str,
)
def test_a_place_that_cannot_be_written_is_wrong_usage(
    download: Download, api: Api, arguments: tuple[str, ...], words: str
) -> None:
    done = download(*arguments)

    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
    assert api.requests == []


def test_no_file_is_fetched_unencrypted_that_an_encrypted_api_names() -> None:
    address = Address("https://api.example.com/prod")

    with serving_api() as bucket, Path("/dev/null").open("wb") as file, pytest.raises(ApiError, match="not encrypted"):
        awaited(HttpOperations(lambda: address).download("http://bucket.example.com/leave?X-Amz-Signature=1", file))

    assert bucket.requests == []
