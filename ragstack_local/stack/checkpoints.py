"""Saves MiniStack's state as a whole, so that a start after a kill finds what was deployed.

MiniStack writes its state once, when it ends in order: a file for each service, in place, with the packages of layers
as text, each as often as a layer has it. Here a checkpoint is written after each deployment too. It is a new folder
that takes the place of the earlier one when all of it is on the disk. Packages are files of their own, named by their
digests; they are links to the objects from which they were deployed, so that they take no space.

Standard library only, like ``guard.py``: MiniStack's interpreter loads this file.
"""

import filecmp
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOGGER: Final = logging.getLogger("ragstack.checkpoints")

ROUTE: Final = "/_ragstack/checkpoint"
"""Saves the state; the method is PUT."""

COMPLETE: Final = "complete"
"""A file in each state folder that this module has written."""

PACKAGES: Final = "packages"
"""The subfolder of a state folder with packages of functions."""

PACKAGE: Final = "__package__"
"""The name of a package's digest in a service's state."""

MIN_PACKAGE_BYTES: Final = 1024
"""Shorter values stay in the state."""

ASSETS: Final = "cdk-*-assets-*"
"""The bucket of what the CDK deploys. Source: CDK developer guide, "Customize AWS CDK bootstrapping"."""


def settle(state: Path) -> None:
    """End the exchange of a state folder that a kill has interrupted."""
    new, old = _new(state), _old(state)
    if not state.exists() and old.exists() and new.exists():
        new.rename(state)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)


class Checkpoints:
    """An ASGI application that saves MiniStack's state on request, and in MiniStack's place when it ends.

    Args:
        application: The application that answers all other requests.
        state: The state folder.
        objects: The folder of the objects of MiniStack's S3.
        saved: Called when a checkpoint is complete.
    """

    def __init__(self, application: Application, state: Path, objects: Path, saved: Callable[[], None]) -> None:
        self._application = application
        self._state = state
        self._objects = objects
        self._saved = saved
        self._read: dict[str, bytes] = {}
        """Packages by their digests, so that layers with the same one share it."""
        self.has_failed = False
        """Whether the last checkpoint could not be written: the folder has an earlier one."""

    def install(self, ministack: Any, persistence: Any, functions: Any) -> None:
        """Take the place of MiniStack's own persistence, given its modules."""
        self._services: Callable[[], Mapping[str, Callable[[], Any]]] = ministack._build_persistence_save_dict
        self._version: Callable[[str], int] = persistence._state_format_version
        self._encoded: Callable[[Any], Any] = persistence._json_default
        decoded = persistence._json_object_hook
        persistence._json_object_hook = lambda value: (
            self._read_package(value[PACKAGE]) if PACKAGE in value else decoded(value)
        )
        functions._externalize_code_zip = functions._prune_orphan_code_blobs = lambda *_: None
        ministack.save_all = lambda _: self._try_to_save()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] != ROUTE or scope["method"] != "PUT":
            await self._application(scope, receive, send)
            return
        # Not in a thread: no other request changes anything meanwhile.
        self._try_to_save()
        await send({"type": "http.response.start", "status": 500 if self.has_failed else 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def _try_to_save(self) -> None:
        try:
            self.save()
            self.has_failed = False
        except Exception:
            LOGGER.exception("The state could not be saved")
            self.has_failed = True

    def save(self) -> None:
        """Write a checkpoint; a kill leaves the earlier one or this one."""
        settle(self._state)
        self._read.clear()
        new, old = _new(self._state), _old(self._state)
        (new / PACKAGES).mkdir(parents=True)
        for service, get_state in self._services().items():
            state = get_state()
            if state is not None:
                wrapped = {"__ministack_format__": self._version(service), "payload": state}
                (new / f"{service}.json").write_text(json.dumps(wrapped, default=self._encode))
        self._take_over_the_rest(new)
        (new / COMPLETE).touch()
        _synchronize(new)
        if self._state.exists():
            self._state.rename(old)
        new.rename(self._state)
        shutil.rmtree(old, ignore_errors=True)
        self._saved()

    def _take_over_the_rest(self, new: Path) -> None:
        """Link what is not written each time: keys, and the state of services that this run has not loaded."""
        earlier = self._state.iterdir() if self._state.exists() else ()
        for file in earlier:
            if file.is_file() and not (new / file.name).exists():
                _link(file, new / file.name)
            elif file.is_dir() and file.name not in (PACKAGES, "lambda-blobs"):
                shutil.copytree(file, new / file.name)

    def _encode(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) >= MIN_PACKAGE_BYTES:
            return {PACKAGE: self._write_package(value)}
        return self._encoded(value)

    def _write_package(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        package, earlier = _new(self._state) / PACKAGES / digest, self._state / PACKAGES / digest
        if package.exists():
            return digest
        if earlier.is_file() and earlier.stat().st_size == len(content):
            _link(earlier, package)
            return digest
        package.write_bytes(content)
        for deployed in self._objects.glob(f"*/{ASSETS}/*.zip"):
            # MiniStack replaces the file of an object and never changes it, so that a link keeps its content.
            if deployed.stat().st_size == len(content) and filecmp.cmp(deployed, package, shallow=False):
                package.unlink()
                _link(deployed, package)
                break
        return digest

    def _read_package(self, digest: str) -> bytes:
        if digest not in self._read:
            self._read[digest] = (self._state / PACKAGES / digest).read_bytes()
        return self._read[digest]


def _new(state: Path) -> Path:
    return state.with_name(f"{state.name}.new")


def _old(state: Path) -> Path:
    return state.with_name(f"{state.name}.old")


def _link(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # a file system without links
        shutil.copyfile(file, name)


def _synchronize(folder: Path) -> None:
    """Write a folder to the disk, so that a power cut leaves all of it or nothing."""
    for path in (*folder.rglob("*"), folder):
        with suppress(OSError):  # folders cannot be synchronized on every system
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
