"""The journal of a run: a file that names every resource before it is created, so that it can always be removed."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

PLANNED: Final = "planned"
REMOVED: Final = "removed"
FOREIGN: Final = "foreign"
"""States of a resource: maybe created; gone; not created by this run, which was refused."""

_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True)
class Resource:
    """Something that a run creates.

    Attributes:
        kind: Says how it is removed: a name in :data:`ragstack_local.certify.removal.KINDS`.
        name: Its name, with the token of the run.
        within: The name of the resource that it is a part of, such as the vector bucket of an index.
    """

    kind: str
    name: str
    within: str = ""


class Journal:
    """The journal of a run, which holds a lock on its file as long as the run lives."""

    def __init__(self, file: IO[str], path: Path, place: Mapping[str, str]) -> None:
        self._file = file
        self._writing = threading.Lock()
        self.path = path
        self.place = place

    @classmethod
    def begin(cls, folder: Path, token: str, place: Mapping[str, str]) -> "Journal":
        """Create the journal of a new run.

        Args:
            folder: The folder of all journals, which is created if it is missing.
            token: Of the run.
            place: Where the run creates its resources; a run elsewhere does not remove them.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{token}{_SUFFIX}"
        unlocked = path.with_suffix(".new")  # which nobody takes for the journal of a dead run
        file = unlocked.open("x+", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        journal = cls(file, path, place)
        journal._append({"token": token, "place": dict(place)})
        unlocked.rename(path)
        return journal

    def note(self, resource: Resource, state: str) -> None:
        """Write the state of a resource, and return when it is on the disk."""
        self._append({"state": state, **asdict(resource)})

    def remaining(self) -> list[Resource]:
        """Return what may exist, in the order of its removal: the last created first."""
        states: dict[Resource, str] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines()[1:]:
            with suppress(ValueError):  # the last line of a killed run may be incomplete
                fields = json.loads(line)
                states[Resource(fields["kind"], fields["name"], fields["within"])] = fields["state"]
        return [resource for resource, state in reversed(states.items()) if state == PLANNED]

    def end(self) -> None:
        """Delete the file if nothing remains, and release its lock."""
        if not self.remaining():
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _append(self, fields: Mapping[str, Any]) -> None:
        with self._writing:
            self._file.write(json.dumps(fields) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())


@contextmanager
def dead_journals(folder: Path) -> Iterator[list[Journal]]:
    """Yield the journals of runs that ended without removing everything, locked while they are used."""
    found: list[Journal] = []
    try:
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            file = path.open("a+", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # the run is alive
                file.close()
                continue
            if not path.exists():  # the run has ended in the meantime
                file.close()
                continue
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):  # so that the next line is complete
                file.write("\n")
            first = text.partition("\n")[0]
            place: Mapping[str, str] = {}
            with suppress(ValueError):  # killed before its first line was complete: it created nothing
                place = json.loads(first)["place"]
            found.append(Journal(file, path, place))
        yield found
    finally:
        for journal in found:
            journal.end()
