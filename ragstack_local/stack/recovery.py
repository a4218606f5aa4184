"""Documents that outlive a local stack which was killed.

MiniStack writes objects at once and everything else when it is asked to end. After a kill the two do not fit, so the
objects of the documents bucket are set aside, the stack starts empty, and they are uploaded again: ingestion then
makes the knowledge base agree with the bucket.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragstack_local.connection import Connection
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.knowledge_base import ACCOUNT, BUCKET

_DESCRIPTION_SUFFIX: Final = ".meta.json"


@dataclass
class Session:
    """One run on a data folder.

    Attributes:
        is_deployed: Whether all stacks were deployed.
        is_written: Whether MiniStack has written its state and ended.
    """

    is_deployed: bool = False
    is_written: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the next run can go on from here."""
        return self.is_deployed and self.is_written


@dataclass(frozen=True)
class DataFolder:
    """The folder in which MiniStack keeps the local stack's state.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def objects(self) -> Path:
        """Objects, by account, bucket and key."""
        return self.path / "s3"

    @property
    def state(self) -> Path:
        """Everything else, written when MiniStack ends."""
        return self.path / "state"

    @property
    def _in_use(self) -> Path:
        return self.path / "in-use"

    @property
    def _aside(self) -> Path:
        return self.path / "recovered-documents"

    @contextmanager
    def opened(self) -> Iterator["Session"]:
        """Use the folder alone; after a run that was killed, set its documents aside and start empty.

        Raises:
            StackError: Another process uses the folder.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        was_killed = self._in_use.exists()
        with self._in_use.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError(
                    f"Another local stack uses {self.path}: end it, or choose another --data-dir"
                ) from None
            if was_killed:
                self._start_empty()
            session = Session()
            try:
                yield session
            finally:
                if session.is_whole:
                    self._in_use.unlink()

    def _start_empty(self) -> None:
        documents = self.objects / ACCOUNT / BUCKET
        if documents.exists():
            shutil.copytree(documents, self._aside, dirs_exist_ok=True)
        shutil.rmtree(self.objects, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)

    def restore(self, connection: Connection) -> int:
        """Upload what was set aside, and tell how many objects that were."""
        s3 = connection.client("s3")
        count = 0
        for key, body in self._set_aside():
            s3.upload_file(str(body), connection.bucket, key)
            count += 1
        shutil.rmtree(self._aside, ignore_errors=True)
        return count

    def _set_aside(self) -> Iterator[tuple[str, Path]]:
        for description in sorted(self._aside.rglob(f"*{_DESCRIPTION_SUFFIX}")):
            body = description.with_name(description.name.removesuffix(_DESCRIPTION_SUFFIX))
            if body.is_file():
                yield json.loads(description.read_text())["key"], body
