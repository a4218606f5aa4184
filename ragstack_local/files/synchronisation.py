"""Compare a folder with the documents of a stack that belong to it: ``ragstack sync``."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.names import canonical
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.roots import Roots, join_key
from ragstack_local.errors import UsageError
from ragstack_local.files.documents import Documents, Present
from ragstack_local.files.uploads import LocalFile, Selection, check_prefix, shown

PREVIEWED: Final = 10
"""Documents of each kind that are shown before a change."""


@dataclass(frozen=True)
class SyncPlan:
    """The differences between a folder and its documents.

    Attributes:
        new: Files without a document.
        changed: Files whose document has another content, other attributes or no final status.
        unchanged: Files whose document is the same, with its status.
        removed: Documents that the folder does not have, by key.
    """

    new: tuple[LocalFile, ...]
    changed: tuple[LocalFile, ...]
    unchanged: tuple[tuple[LocalFile, Present, DocumentStatus], ...]
    removed: Mapping[str, Present]


@dataclass
class Folder:
    """A folder with which a stack is synchronised.

    Attributes:
        path: Its absolute path.
        roots: The keys of the stack; those of the folder change if it moves.
    """

    path: Path
    roots: Roots
    _before: Roots = field(default_factory=Roots, init=False)

    @property
    def key(self) -> str:
        """What the keys of its documents begin with."""
        return str(self.roots.key_of(self.path))

    def name(self, prefix: str | None) -> None:
        """Choose the folder's key: the present one, unless there is another prefix.

        Raises:
            UsageError: Another folder has the same key, and there is no prefix, or the prefix leads out of the bucket.
        """
        check_prefix(prefix or "")
        known = self.roots.key_of(self.path)
        key = join_key((prefix or "").strip("/"), self.path.name)
        if prefix is not None and canonical(key) != canonical(known or ""):
            self._before = Roots(keys=dict(self.roots.keys))
            self.roots.move(self.path, key)
        elif known is None:
            self.roots.keys[self.path] = self.path.name
        if prefix is None and (others := self.roots.others(self.path)):
            raise UsageError(
                f"{shown(others[0])} has the key {self.key}, too, and its documents would be removed: choose another"
                " key with --prefix, or take this one over with --prefix ''"
            )

    def plan(self, documents: Documents, selection: Selection) -> SyncPlan:
        """Compare the files of the folder with the documents of its keys.

        Documents whose path exists here are not removed, even if it is skipped or cannot be read, nor documents of
        another folder whose key is below this one's.

        Raises:
            UsageError: The folder has no documents.
        """
        roots = {*self.roots.within(self.path).values(), *self._before.within(self.path).values()}
        present = {key: each for root in roots for key, each in documents.present(root).items()}
        if not selection.files:
            delete = f"; to remove its {len(present):,} documents: `ragstack delete {self.key}/`" if present else ""
            raise UsageError(f"There are no documents in {shown(self.path)}{delete}")
        # A file keeps the key that its document has, also if the key is in another form than the file's name, unless
        # another file has exactly that key.
        exact = {file.key for file in selection.files}
        names = {canonical(key): key for key in present if key not in exact}
        files = [
            file if file.key in present else replace(file, key=names.get(canonical(file.key), file.key))
            for file in selection.files
        ]
        here = {file.key for file in files}
        unread = [fault.path for fault in selection.faults]
        removed = {
            key: each
            for key, each in present.items()
            if key not in here and self._owns(key) and not self._is_here(key, unread)
        }
        found = [(file, present.get(file.key)) for file in files]
        same = [
            (file, each, each.status)
            for file, each in found
            if each and each.status and _is_same(documents, file, each)
        ]
        unchanged = {file.key for file, _, _ in same}
        return SyncPlan(
            tuple(file for file, each in found if each is None),
            tuple(file for file, each in found if each is not None and file.key not in unchanged),
            tuple(same),
            removed,
        )

    def _owns(self, key: str) -> bool:
        paths = (self.roots.path_of(key), self._before.path_of(key))
        return any(path is not None and path.is_relative_to(self.path) for path in paths)

    def _is_here(self, key: str, unread: Sequence[Path]) -> bool:
        path = self.roots.path_of(key)
        if path is None or self.roots.key_of(path) != key:
            return False
        return os.path.lexists(path) or any(path.is_relative_to(each) for each in unread)


def preview(plan: SyncPlan) -> Iterator[str]:
    """Describe a plan in lines."""
    groups = (
        ("new", [file.key for file in plan.new]),
        ("changed", [file.key for file in plan.changed]),
        ("to remove", sorted(plan.removed)),
    )
    counts = [f"{len(keys):,} {name}" for name, keys in groups if keys]
    yield ", ".join([*counts, f"{len(plan.unchanged):,} unchanged"])
    for name, keys in groups:
        yield from (f"  {name:9}  {key}" for key in keys[:PREVIEWED])
        if len(keys) > PREVIEWED:
            yield f"  {name:9}  ... and {len(keys) - PREVIEWED:,} more (--json lists them)"
    if plan.removed:
        yield "The documents to remove are not in the folder; other people or programs may have uploaded them."


def _is_same(documents: Documents, file: LocalFile, present: Present) -> bool:
    try:
        return documents.is_current(file, present)
    except (InvalidDocumentError, OSError):
        return False  # the upload reports it
