"""The keys of local files, which are remembered for each stack, so that a file has one key however it is named.

The key of a folder, or of a file that was named itself, is its root: files below a folder have its key, a slash, and
their path below it.
"""

import fcntl
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from ragstack_common.core.json_text import parse_json
from ragstack_common.core.names import canonical
from ragstack_common.core.uris import key_of_uri
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection, Project
from ragstack_local.connection.environment import user_folder
from ragstack_local.errors import StackError


@dataclass
class Roots:
    """The keys of folders and files that a stack has documents of.

    Attributes:
        file: Where they are remembered; None for nowhere.
        keys: By absolute path.
    """

    file: Path | None = None
    keys: dict[Path, str] = field(default_factory=dict)
    _forgotten: set[Path] = field(default_factory=set, init=False, repr=False)

    @classmethod
    def for_stack(cls, connection: Connection) -> "Roots":
        """Read what is remembered for a stack: in its data folder, or in the user's folder if it is elsewhere."""
        if connection.is_local:
            return cls.read(Path(connection.data or Project.find().data) / "roots.json")
        return cls.for_api(connection.api_url)

    @classmethod
    def for_api(cls, url: str) -> "Roots":
        """Read what is remembered for the stack with this API."""
        here = running.read(Project.find().running) or {}
        if here.get("api_url") == url:
            return cls.for_stack(Connection(**here))
        return cls.read(user_folder() / "roots" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json")

    @classmethod
    def read(cls, file: Path) -> "Roots":
        """Read a file.

        Raises:
            StackError: It is damaged.
        """
        return cls(file, _read(file))

    def key_of(self, path: Path) -> str | None:
        """Return the key of an absolute path, from the nearest folder whose key is known; None without any."""
        root = self._root_of(path)
        if root is None:
            return None
        return join_key(self.keys[root], "" if root == path else path.relative_to(root).as_posix())

    def within(self, folder: Path) -> dict[Path, str]:
        """Return the key of a folder, and those of the folders and files below it that do not follow from it."""
        own = self.key_of(folder)
        below = {place: key for place, key in self.keys.items() if place.is_relative_to(folder)}
        return below if own is None else {folder: own, **below}

    def others(self, path: Path) -> list[Path]:
        """Return the existing folders and files with the same root, so that files of one name replace each other."""
        root = self._root_of(path)
        key = None if root is None else self.keys[root]
        return [other for other, its in self.keys.items() if its == key and other != root and other.exists()]

    def path_of(self, key: str) -> Path | None:
        """Return the path that has a key, by the longest root that it begins with; None without any."""
        owners = [(len(root), place, root) for place, root in self.keys.items() if is_below(key, root)]
        if not owners:
            return None
        _, place, root = max(owners)
        return place.joinpath(*key.split("/")[root.count("/") + 1 if root else 0 :])

    def local_file(self, uri: str | None) -> str | None:
        """Return the file of this machine that is a document, as the current folder sees it; None without any."""
        key = key_of_uri(uri or "")
        path = self.path_of(key) if key else None
        if path is None or not path.is_file():
            return None
        here = Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)

    def move(self, folder: Path, key: str) -> None:
        """Rekey a folder and all below it; no other path keeps the key."""
        self._forgotten |= {other for other, root in self.keys.items() if root == key or other.is_relative_to(folder)}
        self.keys = {place: root for place, root in self.keys.items() if place not in self._forgotten} | {folder: key}

    def write(self) -> None:
        """Remember the keys, next to those that other commands have added meanwhile."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = _read(self.file)
            now = {place: key for place, key in before.items() if place not in self._forgotten} | self.keys
            if now != before:
                written = self.file.with_suffix(".new")
                written.write_text(json.dumps({str(place): key for place, key in sorted(now.items())}, indent=2))
                written.replace(self.file)

    def _root_of(self, path: Path) -> Path | None:
        return next((place for place in (path, *path.parents) if place in self.keys), None)


def join_key(*parts: str) -> str:
    """Join the parts of a key, without empty ones."""
    return "/".join(part for part in parts if part)


def is_below(key: str, root: str) -> bool:
    """Whether a key is a root, or belongs to a file below it."""
    return not root or canonical(f"{key}/").startswith(canonical(f"{root}/"))


def _read(file: Path) -> dict[Path, str]:
    try:
        found = parse_json(file.read_text())
        return {Path(place): str(key) for place, key in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):
        raise StackError(f"{file}, which remembers the keys of your folders, is damaged: delete it") from None
