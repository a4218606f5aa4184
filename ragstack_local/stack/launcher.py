"""Starts MiniStack behind the guard and the queue of the API, with a state that survives a kill.

Run by MiniStack's own interpreter: ``python -P launcher.py SETTINGS [ORIGIN ...]``, with the settings as JSON: the
files ``journal`` and ``changes`` of items, each with its :class:`durable_items.KeptItems`, and the folder ``unpacked``.

MiniStack itself allows every web page: it accepts any Origin and Host, and sends ``Access-Control-Allow-Origin: *``.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any, Final

GUARD: Final = Path(__file__).parents[2] / "local_bedrock" / "http" / "guard.py"
SIGNALS: Final = ("/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Callbacks of CloudFormation's custom resources and wait conditions, under a token that cannot be guessed."""

MAX_BODY_BYTES: Final = 250 * 1024 * 1024
"""Longest body for other services: packages of functions. Source: AWS Lambda quotas, deployment package, unzipped.

The knowledge base takes documents of 50 MB.
"""

API: Final = "/_aws/execute-api/"

UNUSED_SECONDS: Final = 24 * 3600.0
"""An unpacked archive that no running stack uses is removed when it is older."""


ATTEMPTS: Final = 5
"""A folder that other stacks remove or damage is unpacked again so often."""


class UnpackedArchives:
    """Unpacks each archive once for all stacks of a checkout, and links to it afterwards.

    MiniStack unpacks all layers for each instance of a function, which takes a second of processor time and 150 MB.

    Args:
        folder: Where archives are unpacked, each in a folder that is named by its digest.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._held: dict[str, int] = {}
        """Descriptors of the folders in use, each with a shared lock that ends with this process."""

    def unpack(self, archive: zipfile.ZipFile, path: Path) -> None:
        """Link what an archive holds into an empty folder, and remove the archive, which nobody reads again.

        If another stack uses a damaged folder of the archive, the archive is unpacked without links.
        """
        file = Path(str(archive.filename))
        name = hashlib.sha256(file.read_bytes()).hexdigest()
        shared = self._folder / name
        with self._lock:
            for _ in range(ATTEMPTS):
                if name in self._held:
                    break
                if not shared.exists():
                    self._write(archive, shared)
                self._hold(archive, shared)
            is_shared = name in self._held
        if is_shared:
            for child in shared.iterdir():
                (path / child.name).symlink_to(child)
        else:
            zipfile.ZipFile.extractall(archive, path)
        file.unlink()

    def _write(self, archive: zipfile.ZipFile, shared: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for other in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another stack was faster
                if other.stat().st_mtime < time.time() - UNUSED_SECONDS:
                    self._remove(other)
        partial = Path(tempfile.mkdtemp(dir=self._folder, prefix="."))
        try:
            zipfile.ZipFile.extractall(archive, partial)
            partial.rename(shared)
        except OSError:
            shutil.rmtree(partial)
            if not shared.exists():  # the disk is full; otherwise another stack was faster
                raise

    def _hold(self, archive: zipfile.ZipFile, shared: Path) -> None:
        """Keep a folder from being removed. It is removed instead if it is not what the archive holds."""
        with suppress(FileNotFoundError):  # removed in between
            handle = os.open(shared, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_SH)
            if _is_whole(archive, shared):
                os.utime(shared)
                self._held[shared.name] = handle
            else:
                os.close(handle)
                self._remove(shared)

    def _remove(self, unpacked: Path) -> None:
        """Remove a folder that no stack uses; with its name first, so that a kill leaves no part of it."""
        handle = os.open(unpacked, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            removed = Path(tempfile.mkdtemp(dir=self._folder, prefix="."))
            unpacked.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(handle)


def _is_whole(archive: zipfile.ZipFile, folder: Path) -> bool:
    """Whether a folder has all files of an archive with their sizes; after a power cut, it may not."""
    files = ((folder / each.filename, each.file_size) for each in archive.infolist() if not each.is_dir())
    return all(file.is_file() and file.stat().st_size == size for file, size in files)


class SharedZipFile(zipfile.ZipFile):
    """An archive that is unpacked as :class:`UnpackedArchives` does."""

    archives: UnpackedArchives

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Link what the archive holds into a folder. MiniStack always unpacks whole archives into empty folders."""
        assert members is pwd is None
        self.archives.unpack(self, Path(path))


def is_closed(method: str, path: str) -> bool:
    """Return whether a route of MiniStack's own changes its state, as ``reset`` and ``config`` do."""
    is_signal = method == "PUT" and path.startswith(SIGNALS)
    return path.startswith("/_ministack/") and method not in ("GET", "HEAD") and not is_signal


def read_versions_with_their_headers(s3: Any) -> None:
    """Have MiniStack's S3 answer a request for a version with the headers in its signed address.

    It does that for the current object only, so that a browser would show a download instead of saving it.
    """
    read = s3._get_object  # noqa: SLF001 - MiniStack has no other way

    def get_object(bucket: str, key: str, headers: Any, query: Any = None) -> Any:
        status, given, body = read(bucket, key, headers, query)
        if status == HTTPStatus.OK:
            s3._apply_response_overrides(given, query or {})  # noqa: SLF001 - the same
        return status, given, body

    s3._get_object = get_object  # noqa: SLF001 - the same


def main() -> None:
    """Serve until asked to end."""
    here = Path(__file__)
    guard, limit = _load(GUARD), _load(GUARD.with_name("body_limit.py"))
    refused, queue, durable, checkpoint = (
        _load(here.with_name(name))
        for name in ("refused_tokens.py", "api_queue.py", "durable_items.py", "checkpoints.py")
    )
    os.umask(guard.PRIVATE_UMASK)
    guard.end_with_parent()
    from ministack import app as ministack  # type: ignore[import-not-found] # noqa: PLC0415 - not in this environment
    from ministack.core import lambda_runtime, persistence  # type: ignore[import-not-found] # noqa: PLC0415
    from ministack.services import lambda_svc, s3  # type: ignore[import-not-found] # noqa: PLC0415

    settings, *origins = sys.argv[1:]
    given = json.loads(settings)
    SharedZipFile.archives = UnpackedArchives(Path(given["unpacked"]))
    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": SharedZipFile})
    changes = durable.Changes(Path(given["changes"]["file"]))
    records = durable.DurableItems(ministack.app, changes, durable.KeptItems(**given["changes"]["kept"]))
    journal = durable.Journal(Path(given["journal"]["file"]))
    items = durable.DurableItems(records, journal, durable.KeptItems(**given["journal"]["kept"]))
    checkpoints = checkpoint.Checkpoints(
        items,
        Path(os.environ["STATE_DIR"]),
        Path(os.environ["S3_DATA_DIR"]),
        lambda: changes.clear() if records.is_restored else None,
    )
    checkpoints.install(ministack, persistence, lambda_svc)
    read_versions_with_their_headers(s3)
    limited = limit.BodyLimit(
        refused.RefusedTokens(queue.ApiQueue(checkpoints)),
        lambda path: limit.API_BYTES if path.startswith(API) else MAX_BODY_BYTES,
    )
    ministack.app = guard.BrowserGuard(limited, origins=origins, is_closed=is_closed)
    del sys.argv[1:]
    ministack.main()
    if checkpoints.has_failed:
        sys.exit("The state of the last checkpoint is older than the end of this run")


def _load(file: Path) -> ModuleType:
    # By its path: this package's folder on sys.path would shadow modules of MiniStack and of the functions.
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
