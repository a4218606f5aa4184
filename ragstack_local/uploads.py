"""Which files are uploaded, and under which keys."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragstack_common.documents import SIDECAR_SUFFIX, SUFFIXES, leaves_its_bucket
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_local.stack.errors import StackError, refuse


@dataclass(frozen=True)
class LocalFile:
    """A file to upload.

    Attributes:
        path: Where it is.
        key: Its key in the bucket.
    """

    path: Path
    key: str

    @property
    def sidecar_path(self) -> Path:
        """Where its sidecar is, if it has one."""
        return self.path.with_name(self.path.name + SIDECAR_SUFFIX)

    @property
    def sidecar(self) -> Path | None:
        """The file's sidecar, where there is one beside it."""
        return self.sidecar_path if self.sidecar_path.is_file() else None


@dataclass(frozen=True)
class Selection:
    """What was found below the paths.

    Attributes:
        files: To upload.
        skipped: Of types that the service does not read.
        orphans: Sidecars with no document beside them.
    """

    files: tuple[LocalFile, ...]
    skipped: tuple[Path, ...]
    orphans: tuple[Path, ...] = ()


def select(paths: Sequence[Path], prefix: str = "") -> Selection:
    """Find the documents among files and folders; a folder's documents keep its name in their keys.

    Raises:
        StackError: A path does not exist or a named file has an unsupported type; or a folder cannot be read, two files
            would have one key, a name is none that a key can be, or a sidecar cannot be used: all of these are named.
    """
    found = find(paths, prefix)
    refuse([fault for file in found.files if (fault := _fault_of_sidecar(file.sidecar))])
    return found


def find(paths: Sequence[Path], prefix: str = "") -> Selection:
    """Find the documents like :func:`select`, whatever their sidecars say.

    Raises:
        StackError: As there.
    """
    files: dict[str, LocalFile] = {}
    skipped: list[Path] = []
    orphans: list[Path] = []
    faults: list[str] = []
    for given in paths:
        path = given.expanduser()
        if not path.exists():
            raise StackError(f"{given} does not exist")
        if path.is_file() and path.suffix.lower() not in SUFFIXES:
            raise StackError(f"{given} is of a type that is not read; supported are {', '.join(sorted(SUFFIXES))}")
        for name, file in _below(path, faults) if path.is_dir() else [(path.name, path)]:
            if name.endswith(SIDECAR_SUFFIX):
                orphans += [] if file.with_name(file.name.removesuffix(SIDECAR_SUFFIX)).exists() else [file]
            elif file.suffix.lower() not in SUFFIXES:
                skipped.append(file)
            else:
                key = f"{prefix.strip('/')}/{name}".lstrip("/")
                if fault := _fault_of_key(key, file, files.get(key)):
                    faults.append(fault)
                files[key] = LocalFile(file, key)
    refuse(faults)
    return Selection(tuple(files.values()), tuple(skipped), tuple(orphans))


def _below(folder: Path, faults: list[str]) -> Iterator[tuple[str, Path]]:
    """Find the files that are not hidden, and name them from the folder on; a folder that cannot be read is a fault."""
    root = folder.resolve()

    def tell(error: OSError) -> None:
        faults.append(f"{error.filename} cannot be read: {os.strerror(error.errno or 0)}")

    found: list[Path] = []
    for place, folders, names in os.walk(root, onerror=tell):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
    for file in sorted(found):
        if file.is_file():
            yield (root.name / file.relative_to(root)).as_posix(), file


def _fault_of_key(key: str, file: Path, other: LocalFile | None) -> str | None:
    try:
        key.encode()
    except UnicodeEncodeError:
        return f"The name of {str(file)!a} is no UTF-8, which a key must be: rename it"
    if leaves_its_bucket(key):
        return f"{file} would be uploaded as {key}, and S3 takes no key that leads out of its bucket: another --prefix"
    if other and not _is_one_file(file, other.path):
        return f"{other.path} and {file} would both be uploaded as {key}: upload one with another --prefix"
    return None


def _is_one_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return one == other  # it has just vanished


def _fault_of_sidecar(sidecar: Path | None) -> str | None:
    if sidecar is None:
        return None
    try:
        parse_sidecar(sidecar.read_bytes())
    except InvalidDocumentError as error:
        return f"{sidecar} cannot be used: {error}"
    except OSError:
        return None  # its document alone is not uploaded, for that reason
    return None
