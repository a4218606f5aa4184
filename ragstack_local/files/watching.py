"""Keep the bucket in step with folders: ``ragstack ingest --watch``.

Notifications only say when to look. The changes are the differences between the folders now and before, so that a moved
folder, an atomically replaced file and a lost notification are all handled in the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import watchfiles
from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.errors import RegistryError
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.following import Gone
from ragstack_local.connection.roots import Roots
from ragstack_local.errors import StackError
from ragstack_local.files.bucket import State, file_state
from ragstack_local.files.documents import StackDocuments
from ragstack_local.files.ingestion import ingest
from ragstack_local.files.uploads import Fault, LocalFile, Selection, select, shown


@dataclass
class Watch:
    """Compares folders with what they were, and uploads or deletes the differences.

    Attributes:
        prefix: Put before every key.
        timeout_seconds: Maximum time to wait for the documents of one change.
        report: Called with the statuses of the changed documents.
        warn: Called with problems that may pass.
        follow_links: Whether links that leave a folder are followed.
        roots: The keys of the stack's files.
    """

    paths: Sequence[Path]
    prefix: str
    documents: StackDocuments
    timeout_seconds: float
    report: Callable[[Mapping[str, DocumentStatus]], None]
    warn: Callable[[str], None]
    follow_links: bool = False
    roots: Roots = field(default_factory=Roots)
    _seen: dict[str, tuple[LocalFile, State]] = field(default_factory=dict, init=False)
    _problems: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._folders = [path.resolve() for path in map(Path.expanduser, self.paths) if path.is_dir()]

    def note(self, selection: Selection) -> None:
        """Mark files as uploaded in their current state, and faults as reported."""
        self._seen = {file.key: (file, file_state(file)) for file in selection.files}
        self._problems = {_described(fault) for fault in selection.faults}

    def run(self) -> None:
        """Watch until interrupted.

        Raises:
            KeyboardInterrupt: When it is interrupted.
        """
        # The folder of a named file, because editors replace files.
        watched = self._folders or [path.expanduser().resolve().parent for path in self.paths]
        for _ in watchfiles.watch(
            *watched,
            watch_filter=None,
            # Milliseconds without a change after which a file counts as complete.
            step=300,
            # Network drives send no notifications.
            rust_timeout=10_000,
            yield_on_timeout=True,
            ignore_permission_denied=True,
            recursive=bool(self._folders),
        ):
            self.look()

    def look(self) -> None:
        """Upload and delete what differs, and wait until it is processed."""
        problems = [
            f"{folder} is missing: its documents stay in the bucket until it is back"
            for folder in self._folders
            if not folder.is_dir()
        ]
        try:
            present = [path for path in self.paths if path.expanduser().exists()]
            found = select(present, self.prefix, follow_links=self.follow_links, roots=self.roots)
            problems += map(_described, found.faults)
            now = {file.key: (file, file_state(file)) for file in found.files}
            self._upload({key: seen for key, seen in now.items() if self._seen.get(key) != seen})
            self._delete([key for key, (file, _) in self._seen.items() if key not in now and self._is_deleted(file)])
        except (ClientError, BotoCoreError, RegistryError, StackError) as error:
            # Files that were not uploaded still differ from the last state, so they are tried again.
            problems.append(str(error))
        for problem in problems:
            if problem not in self._problems:
                self.warn(problem)
        self._problems = set(problems)

    def _upload(self, changed: Mapping[str, tuple[LocalFile, State]]) -> None:
        if changed:
            self.report(ingest(self.documents, [file for file, _ in changed.values()], self.timeout_seconds).statuses)
            self._seen.update(changed)

    def _delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.documents.bucket.remove(key)
            del self._seen[key]
        if gone := {self.documents.bucket.uri(key): Gone() for key in keys}:
            self.report(self.documents.follow(gone, lambda _: None, self.timeout_seconds))

    def _is_deleted(self, file: LocalFile) -> bool:
        """Whether a missing file was deleted, and is not just unreachable at the moment."""
        roots = [folder for folder in self._folders if file.path.is_relative_to(folder)] or [file.path.parent]
        try:
            file.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return all(root.is_dir() for root in roots)
        except OSError:
            return False
        return False


def _described(fault: Fault) -> str:
    return f"{shown(fault.path)}: {fault.reason}"
