"""Keep the bucket in step with folders.

Notifications only say when to look. The changes are the differences between the folders now and before, so that a moved
folder, an atomically replaced file and a lost notification are all handled in the same way.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import watchfiles
from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import RegistryError
from ragstack_local.bucket import NotUploaded, State, state_of
from ragstack_local.documents import StackDocuments
from ragstack_local.errors import StackError
from ragstack_local.following import ENDED, FOUND, NOT_UPLOADED, Awaited, Gone, Uploaded, statuses_of
from ragstack_local.uploads import LINKS, LocalFile, Selection, select, shown

TICK_MILLISECONDS: Final = 300
LONGEST_DEBOUNCE_MILLISECONDS: Final = 600

LOOK_SECONDS: Final = 10.0
"""Interval of looking without a notification, because network drives send none."""

RETRY_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Outcome:
    """The final status of a document.

    Attributes:
        status: Final.
        uri: The document's.
        seconds: Since it was uploaded or deleted.
    """

    status: DocumentStatus
    uri: str
    seconds: float


@dataclass(frozen=True)
class _Seen:
    file: LocalFile
    state: State


@dataclass(frozen=True)
class _InProgress:
    awaited: Awaited
    since: float


class Watch:
    """Compares folders with what they were, and uploads or deletes the differences."""

    def __init__(
        self,
        paths: Sequence[Path],
        prefix: str,
        documents: StackDocuments,
        *,
        report: Callable[[Outcome], None],
        warn: Callable[[str], None],
        follow_links: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Watch files and folders that exist.

        Args:
            paths: What is watched.
            prefix: Put before every key.
            documents: Where changes are uploaded and deleted.
            report: Called with each outcome.
            warn: Called with problems that may pass.
            follow_links: Whether links that leave a folder are followed.
            clock: Seconds.
            sleep: Waits that many seconds.
        """
        self._roots = {path: path.expanduser().resolve() for path in paths}
        self._folders = [root for root in self._roots.values() if root.is_dir()]
        self._prefix = prefix
        self._bucket, self._registry = documents.bucket, documents.registry
        self._report = report
        self._warn = warn
        self._follow_links = follow_links
        self._clock = clock
        self._sleep = sleep
        self._seen: dict[str, _Seen] = {}
        self._unsettled: dict[str, State] = {}
        self._in_progress: dict[str, _InProgress] = {}
        self._looked_at = -LOOK_SECONDS
        self._warning = ""
        self._missing: set[Path] = set()
        self._refused: set[str] = set()

    @property
    def in_progress(self) -> int:
        """Number of documents without a final status."""
        return len(self._in_progress)

    def note(self, selection: Selection) -> None:
        """Mark files as uploaded in their current state, and refused files as reported."""
        self._seen.update({file.key: _Seen(file, state_of(file)) for file in selection.files})
        self._refused = set(_refusals(selection))

    def run(self) -> None:
        """Watch until interrupted.

        Raises:
            KeyboardInterrupt: When it is interrupted.
        """
        for changed in self._notifications():
            self.tick(changed=changed)

    def tick(self, *, changed: bool = False) -> None:
        """Look for changes if there is a reason to, and report documents that have become final.

        Args:
            changed: Whether there was a notification.
        """
        try:
            due = self._clock() - self._looked_at >= LOOK_SECONDS
            if changed or due or self._unsettled or self._a_named_file_changed():
                self._look()
                self._looked_at = self._clock()
            self._ask()
            self._warning = ""
        except (ClientError, BotoCoreError, RegistryError, StackError) as error:
            # Files that were not uploaded still differ from what was seen, so they are tried again.
            self._looked_at = -LOOK_SECONDS
            self._warn_once(str(error))
            self._sleep(RETRY_SECONDS)

    def _notifications(self) -> Iterator[bool]:
        if not self._folders:
            while True:
                self._sleep(TICK_MILLISECONDS / 1000)
                yield False
        for changes in watchfiles.watch(
            *self._folders,
            watch_filter=None,
            debounce=LONGEST_DEBOUNCE_MILLISECONDS,
            rust_timeout=TICK_MILLISECONDS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            yield bool(changes)

    def _look(self) -> None:
        missing = {given for given, root in self._roots.items() if not self._is_there(root)}
        for path in missing - self._missing:
            self._warn(f"{path} is missing as a whole: its documents stay in the bucket until it is back")
        self._missing = missing
        present = [path for path in self._roots if path.expanduser().exists()]
        found = select(present, self._prefix, follow_links=self._follow_links)
        refusals = _refusals(found)
        for refusal in refusals:
            if refusal not in self._refused:
                self._warn(refusal)
        self._refused = set(refusals)
        now = {file.key: _Seen(file, state_of(file)) for file in found.files}
        differing = {key for key, seen in now.items() if self._seen.get(key) != seen}
        # A file that is being written differs between two looks.
        settled = [key for key in differing if self._unsettled.get(key) == now[key].state]
        self._unsettled = {key: now[key].state for key in differing}
        self._delete([key for key in self._seen if key not in now and self._is_deleted(self._seen[key].file)])
        self._upload([now[key] for key in sorted(settled)])

    def _upload(self, changed: Sequence[_Seen]) -> None:
        if not changed:
            return
        known = self._registry.read([self._bucket.uri(seen.file) for seen in changed])
        start = self._clock()
        results = dict(self._bucket.put_all([seen.file for seen in changed], known))
        for seen in changed:
            file, result = seen.file, results[seen.file]
            uri = self._bucket.uri(file)
            if isinstance(result, NotUploaded):
                self._report(Outcome(DocumentStatus(NOT_UPLOADED, result.reason), uri, self._clock() - start))
            elif isinstance(result, Uploaded):
                self._in_progress[uri] = _InProgress(result, start)
            elif result.status not in FOUND:
                self._report(Outcome(result.status, uri, self._clock() - start))
            self._seen[file.key] = seen
            self._unsettled.pop(file.key, None)

    def _delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            start = self._clock()
            self._bucket.remove(key)
            self._in_progress[self._bucket.uri_of(key)] = _InProgress(Gone(), start)
            del self._seen[key]

    def _ask(self) -> None:
        if not self._in_progress:
            return
        statuses = statuses_of(self._registry, {uri: one.awaited for uri, one in self._in_progress.items()})
        for uri, status in statuses.items():
            if status in ENDED:
                since = self._in_progress.pop(uri).since
                self._report(Outcome(status, uri, self._clock() - since))

    def _a_named_file_changed(self) -> bool:
        return any(
            state_of(seen.file) != seen.state for seen in self._seen.values() if seen.file.path.resolve() in self._named
        )

    @property
    def _named(self) -> set[Path]:
        return {root for root in self._roots.values() if root not in self._folders}

    def _is_there(self, root: Path) -> bool:
        """Whether a folder exists, or the folder of a named file."""
        return root.is_dir() if root in self._folders else root.parent.is_dir()

    def _is_deleted(self, file: LocalFile) -> bool:
        """Whether a missing file was deleted, and is not just unreachable at the moment."""
        for root in self._roots.values():
            if file.path.is_relative_to(root) and not self._is_there(root):
                return False
        try:
            file.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return False

    def _warn_once(self, text: str) -> None:
        if text != self._warning:
            self._warning = text
            self._warn(text)


def _refusals(selection: Selection) -> list[str]:
    """List the files that are not uploaded although the user probably expects it."""
    refusals = [f"{shown(fault.path)}: {fault.reason}" for fault in selection.faults]
    return refusals + [f"{shown(each.path)}: {each.why}" for each in selection.skipped if each.why in LINKS]
