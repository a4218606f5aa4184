"""Which files are uploaded, and under which keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragstack_common.documents import SIDECAR_SUFFIX, SUFFIXES
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_local.stack.errors import StackError


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
    """What was found below the paths: files to upload, and files of types that the service does not read."""

    files: tuple[LocalFile, ...]
    skipped: tuple[Path, ...]


def select(paths: Sequence[Path], prefix: str = "") -> Selection:
    """Find the documents among files and folders; a folder's documents keep its name in their keys.

    Raises:
        StackError: A path does not exist, a named file has an unsupported type, two files would have one key, a name is
            no text, or a sidecar cannot be used.
    """
    found = find(paths, prefix)
    for file in found.files:
        _check_sidecar(file.sidecar)
    return found


def find(paths: Sequence[Path], prefix: str = "") -> Selection:
    """Find the documents like :func:`select`, whatever their sidecars say.

    Raises:
        StackError: As there.
    """
    files: dict[str, LocalFile] = {}
    skipped: list[Path] = []
    for given in paths:
        path = given.expanduser()
        if not path.exists():
            raise StackError(f"{given} does not exist")
        if path.is_file() and path.suffix.lower() not in SUFFIXES:
            raise StackError(f"{given} is of a type that is not read; supported are {', '.join(sorted(SUFFIXES))}")
        for name, file in _below(path) if path.is_dir() else [(path.name, path)]:
            if file.suffix.lower() not in SUFFIXES:
                skipped.append(file)
                continue
            key = f"{prefix.strip('/')}/{name}".lstrip("/")
            _check_key(key, file, files.get(key))
            files[key] = LocalFile(file, key)
    return Selection(tuple(files.values()), tuple(skipped))


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Find the files that are not hidden and no sidecars, and name them from the folder on."""
    root = folder.resolve()
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root)
        passed_over = path.name.endswith(SIDECAR_SUFFIX) or any(part.startswith(".") for part in path.parts)
        if not passed_over and file.is_file():
            yield (root.name / path).as_posix(), file


def _check_key(key: str, file: Path, other: LocalFile | None) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise StackError(f"The name of {str(file)!a} is no UTF-8, which a key must be: rename it") from None
    if other and not _is_one_file(file, other.path):
        raise StackError(f"{other.path} and {file} would both be uploaded as {key}: upload one with another --prefix")


def _is_one_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return one == other  # it has just vanished


def _check_sidecar(sidecar: Path | None) -> None:
    if sidecar is None:
        return
    try:
        parse_sidecar(sidecar.read_bytes())
    except InvalidDocumentError as error:
        raise StackError(f"{sidecar} cannot be used: {error}") from None
