"""The files to upload: their keys, and the attributes from their sidecars and the command line.

Files are looked up with ``os.path``: Path raises an error if a name is too long for the file system, as a sidecar's can
be when the document's is not.
"""

import errno
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn

from ragstack_common.core.artefacts import is_reserved
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.uris import SIDECAR_SUFFIX, is_program_file, leaves_its_bucket
from ragstack_common.ingestion.sidecars import (
    canonical_sidecar,
    check_attributes,
    check_corpus,
    merged_sidecar,
    read_sidecar,
    write_sidecar,
)
from ragstack_common.reading import formats
from ragstack_common.registry.records import Attributes, AttributeValue
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES
from ragstack_local.connection.roots import Roots, join_key
from ragstack_local.errors import UsageError

FOLLOW_LINKS: Final = "--follow-links"

_ABSENT: Final = (errno.ENOENT, errno.ENAMETOOLONG)
"""A document's name can be so long that no sidecar of it can exist."""


@dataclass(frozen=True)
class LocalFile:
    """A file to upload, and its key in the bucket."""

    path: Path
    key: str

    @property
    def sidecar_path(self) -> Path:
        """Where its sidecar is, if it has one."""
        return self.path.with_name(self.path.name + SIDECAR_SUFFIX)

    @property
    def sidecar(self) -> Path | None:
        """The file's sidecar, if there is one next to it."""
        return self.sidecar_path if os.path.isfile(self.sidecar_path) else None


class Skip(StrEnum):
    """Why a file or folder is skipped."""

    TYPE = "unsupported type"
    HIDDEN = "hidden"
    PROGRAM = "lock or system file"
    LEAVES = "link that leaves the folder"
    READ_ALREADY = "link to a folder that was read already"
    ORPHAN = "sidecar without a document"
    MADE = "made of a document by RAGStack"


@dataclass(frozen=True)
class Skipped:
    """A file or folder that is skipped on purpose."""

    path: Path
    why: Skip


@dataclass(frozen=True)
class Fault:
    """A file or folder that was meant to be uploaded and cannot be."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Selection:
    """The files that were found.

    Attributes:
        files: To upload.
        skipped: Files that are not uploaded on purpose; for a skipped folder, only the folder.
        faults: Files that cannot be uploaded; they do not stop the others.
        named: The key of each path that was named; for a folder, what the keys of its files begin with.
    """

    files: tuple[LocalFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    faults: tuple[Fault, ...] = ()
    named: Mapping[Path, str] = field(default_factory=dict)


def select(
    paths: Sequence[Path], prefix: str = "", *, follow_links: bool = False, roots: Roots | None = None
) -> Selection:
    """Find the documents among files and folders; a folder's documents keep its name in their keys.

    A file has the key that is remembered for it, or follows from that of a folder above it. New roots are added to
    *roots*, but not written.

    Symbolic links to files of the same folder are uploaded under their own names. Links to folders of the same folder
    are ignored, because their files are found in their own place.

    Args:
        paths: Files and folders; a link among them is followed.
        prefix: Put before every new key.
        follow_links: Whether links that leave a folder are followed too.
        roots: The known keys; None for a selection of its own.

    Raises:
        UsageError: A path does not exist, the prefix leads out of the bucket, or a path has a key without the prefix.
    """
    check_prefix(prefix)
    require(paths)
    search = _Search(prefix.strip("/"), follow_links, Roots() if roots is None else roots)
    # Folders before what is in them, so that the order of the paths does not decide the keys.
    for path in sorted(map(Path.expanduser, paths), key=lambda path: len(path.resolve().parts)):
        search.add(path)
        search.roots.keys |= {place: key for place, key in search.named.items() if search.roots.key_of(place) is None}
    return Selection(tuple(search.files.values()), tuple(search.skipped), tuple(search.faults), search.named)


def check_prefix(prefix: str) -> None:
    """Check that keys can begin with a prefix.

    Raises:
        UsageError: It leads out of the bucket.
    """
    if leaves_its_bucket(prefix.strip("/")):
        raise UsageError(f"The prefix {prefix} leads out of its bucket: use another --prefix")


def require(paths: Sequence[Path]) -> None:
    """Check that paths exist.

    Raises:
        UsageError: One does not.
    """
    if missing := [path for path in paths if not os.path.exists(path.expanduser())]:
        raise UsageError("\n".join(f"{shown(path)} does not exist" for path in missing))


def _is_read(path: Path) -> bool:
    """Whether a file has a supported format by its extension, or by its content if it has no extension."""
    if formats.is_supported(path.name) or not formats.may_be_read(path.name):
        return formats.is_supported(path.name)
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            return False
        formats.of_content(path.read_bytes(), path.name)
    except (OSError, formats.UnreadableDocument):
        return False
    return True


@dataclass
class _Search:
    prefix: str
    follow_links: bool
    roots: Roots
    named: dict[Path, str] = field(default_factory=dict)
    files: dict[str, LocalFile] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add a path that the user named."""
        if path.is_dir():
            root = path.resolve()
            key = self.named[root] = self._key(root)
            self._walk(root, root, key, {str(root)})
        elif is_program_file(path.name):
            self.skipped.append(Skipped(path, Skip.PROGRAM))
        elif not _is_read(path) and not path.name.endswith(SIDECAR_SUFFIX):
            supported = ", ".join(sorted(formats.MEDIA_TYPES))
            self.faults.append(Fault(path, f"Its type is not supported; supported are {supported}"))
        else:
            place = path.parent.resolve() / path.name
            key = self._key(place)
            self._add_file(path, key, place.parent)
            if (file := self.files.get(key)) and file.path == path:
                self.named[place] = key

    def _key(self, place: Path) -> str:
        key = self.roots.key_of(place)
        if key is None:
            return join_key(self.prefix, place.name)
        if self.prefix and not f"{key}/".startswith(f"{self.prefix}/"):
            folder = place if place.is_dir() else place.parent
            raise UsageError(
                f"{shown(place)} was uploaded as {key}: leave --prefix out, or give its folder other keys with"
                f" `ragstack sync {shlex.quote(shown(folder))} --prefix {shlex.quote(self.prefix)}`"
            )
        return key

    def _walk(self, root: Path, folder: Path, key: str, read: set[str]) -> None:
        """Add the content of a folder.

        Args:
            root: The folder that the user named.
            folder: It, or one below it.
            key: What the keys of the folder's files begin with.
            read: The real paths of the folders that were read, so that links in a circle end.
        """
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.faults.append(Fault(folder, unreadable(error)))
            return
        for entry in entries:
            path = folder / entry.name
            inner = self.roots.keys.get(path) or join_key(key, entry.name)
            is_link = entry.is_symlink()
            leaves = is_link and _leaves(path, root)
            try:
                is_folder = entry.is_dir()
            except OSError as error:
                self.faults.append(Fault(path, unreadable(error)))
                continue
            real = os.path.realpath(path)
            if entry.name.startswith("."):
                self.skipped.append(Skipped(path, Skip.HIDDEN))
            elif leaves and not self.follow_links:
                self.skipped.append(Skipped(path, Skip.LEAVES))
            elif is_program_file(entry.name) and not is_folder:
                self.skipped.append(Skipped(path, Skip.PROGRAM))
            elif not is_folder:
                self._add_file(path, inner, root)
            elif real not in read and (leaves or not is_link):
                read.add(real)
                self._walk(root, path, inner, read)
            elif leaves:
                self.skipped.append(Skipped(path, Skip.READ_ALREADY))

    def _add_file(self, path: Path, key: str, root: Path) -> None:
        file = LocalFile(path, key)
        if path.name.endswith(SIDECAR_SUFFIX):
            if not os.path.exists(path.with_name(path.name.removesuffix(SIDECAR_SUFFIX))):
                self.skipped.append(Skipped(path, Skip.ORPHAN))
        elif is_reserved(key):
            self.skipped.append(Skipped(path, Skip.MADE))
        elif not _is_read(path):
            self.skipped.append(Skipped(path, Skip.TYPE))
        elif reason := self._fault(file, root):
            self.faults.append(Fault(path, reason))
        else:
            self.files.setdefault(file.key, file)

    def _fault(self, file: LocalFile, root: Path) -> str | None:
        other, sidecar = self.files.get(file.key), file.sidecar_path
        if not os.path.isfile(file.path):
            return "It is a link to a missing file" if os.path.islink(file.path) else "It is not a regular file"
        try:
            file.key.encode()
        except UnicodeEncodeError:
            return "Its name is not UTF-8, which a key must be: rename it"
        if other and not file.path.samefile(other.path):
            return f"{shown(other.path)} is uploaded as {file.key} already: upload one of them with another --prefix"
        if not self.follow_links and os.path.islink(sidecar) and _leaves(sidecar, root):
            # Uploaded without its attributes, it could be found by people who must not see it.
            return f"Its sidecar is a link that leaves the folder: replace it by a copy, or ingest with {FOLLOW_LINKS}"
        return None


def shown(path: Path) -> str:
    """Return a path as text that any terminal and JSON can hold, whatever its bytes are."""
    return os.fsencode(path).decode(errors="replace")


def _leaves(link: Path, root: Path) -> bool:
    # Path.resolve raises an error where links form a circle.
    return not Path(os.path.realpath(link)).is_relative_to(root)


def unreadable(error: OSError) -> str:
    """Return why a file cannot be read, without its path on this machine."""
    return f"It cannot be read: {os.strerror(error.errno or 0)}"


def read_options(corpus: str | None, version: str | None, metadata: Sequence[str]) -> dict[str, AttributeValue]:
    """Read the attributes that the command line gives to every document.

    Args:
        corpus: The attribute of that name.
        version: The attribute of that name; always a text.
        metadata: Each ``name=value``. A JSON number, boolean, quoted text or list of texts is read as such; any other
            value is a text.

    Raises:
        InvalidDocumentError: An attribute is invalid.
    """
    found: dict[str, AttributeValue] = {}
    if corpus is not None:
        found["corpus"] = corpus
    if version is not None:
        found["version"] = version
    for option in metadata:
        name, _, text = (part.strip() for part in option.partition("="))
        if not (name and text):
            raise InvalidDocumentError(f"{option!r} is not a NAME=VALUE pair")
        if name in found:
            raise InvalidDocumentError(f"{name} is given twice")
        found[name] = _value(option.partition("=")[2])
    write_sidecar(found)
    check_corpus(found)
    return found


def sidecar_for(file: LocalFile, given: Attributes, vector_store: str) -> bytes | None:
    """Return the sidecar to upload with a file: its own, with the *given* attributes that it does not set.

    Returns:
        None if there is neither.

    Raises:
        InvalidDocumentError: The document cannot have these attributes; the message names the file.
        OSError: The sidecar cannot be read.
    """
    whose = shown(file.sidecar_path)
    try:
        body = file.sidecar_path.read_bytes()
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        if os.path.islink(file.sidecar_path):
            raise InvalidDocumentError(f"{whose} is a link to a missing file") from None
        return _checked(file, given, vector_store) if given else None
    try:
        read_sidecar(body, vector_store)
        if given:
            whose += ", with the attributes of the command line,"
            body = merged_sidecar(body, given)
            read_sidecar(body, vector_store)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"{whose} cannot be used: {error}") from None
    return canonical_sidecar(body)


def _checked(file: LocalFile, given: Attributes, vector_store: str) -> bytes:
    try:
        check_attributes(given, vector_store)
        return write_sidecar(given)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(
            f"{shown(file.path)} cannot have the attributes from the command line: {error}"
        ) from None


def _value(text: str) -> Any:
    try:
        value = parse_json(text, parse_constant=_refuse)
    except ValueError:
        return text
    if value is None or isinstance(value, dict):
        raise InvalidDocumentError(
            f"{text} cannot be an attribute, which is a text, a number, true or false, or a list of texts;"
            " write it in double quotes for a text"
        )
    return value


def _refuse(constant: str) -> NoReturn:
    """Reject NaN and Infinity, which Python reads although they are not JSON."""
    raise ValueError(constant)
