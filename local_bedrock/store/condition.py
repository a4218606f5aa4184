"""Whether the file of the index can be used, and what becomes of one that cannot."""

from itertools import count
from pathlib import Path
from typing import Final

import apsw

from local_bedrock.store import schema

FILE_NAME: Final = "bedrock.sqlite3"


def find_fault(file: Path) -> str | None:
    """Return why an existing index cannot be used, as the end of a sentence; None if it can.

    Takes a second for each gigabyte.
    """
    if not file.exists():
        return None
    if not file.is_file():
        return f"is {'a folder' if file.is_dir() else 'not a regular file'}"
    if not file.stat().st_size:
        return "is empty (0 bytes)"
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            version = int(connection.execute("PRAGMA user_version").get)
            if version != schema.VERSION:
                return f"has schema version {version}, and this program has {schema.VERSION}"
            found = str(connection.execute("PRAGMA quick_check(1)").get)
        finally:
            connection.close()
    except apsw.CantOpenError as error:
        return f"cannot be opened ({error})"
    except (apsw.CorruptError, apsw.NotADBError) as error:
        found = str(error)
    return None if found == "ok" else f"is damaged ({' '.join(found.split())})"


def set_aside(file: Path, fault: str) -> None:
    """Move an index that cannot be used into a folder of its own, and mark the data folder as incomplete."""
    kept = next(folder for n in count(1) if not (folder := file.with_name(f"replaced-index-{n}")).exists())
    file.with_name(schema.INCOMPLETE).write_text(f"The index {fault}. The replaced file is in {kept}")
    kept.mkdir()
    for part in (file, *(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm"))):
        if part.exists():
            part.rename(kept / part.name)


def create(file: Path) -> None:
    """Create an empty index; a kill leaves either all of it or nothing."""
    unfinished = file.with_name(file.name + ".new")
    unfinished.unlink(missing_ok=True)
    connection = apsw.Connection(str(unfinished))
    with connection:
        connection.execute(schema.TABLES)
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    connection.close()
    unfinished.rename(file)
