"""Fuzz a reader, guided by the lines of code that each file reaches.

Run: ``python -m tests.support.fuzz_readers FORMAT FOLDER [OPTIONS OF LIBFUZZER]``; the folder has the first files.
"""

import contextlib
import importlib
import sys
from random import Random

atheris = importlib.import_module("atheris")  # not among the packages of the project
with atheris.instrument_imports(include=["ragstack_common.reading", "tinycss2", "xlrd"]):
    from ragstack_common.reading.formats import UnreadableDocument
    from tests.support.damaged_files import READERS, damaged


def main() -> None:
    file_format = sys.argv.pop(1)
    read = READERS[file_format]

    def run(data: bytes) -> None:
        with contextlib.suppress(UnreadableDocument, MemoryError, RecursionError):
            read(data)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        return damaged(bytes(data), file_format, Random(seed))[:max_size]

    atheris.Setup(sys.argv, run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
