"""Convert files in a worker process with limited memory and time."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ragstack_common.reading import conversion
from ragstack_common.reading.conversion import ReadText
from ragstack_common.reading.limits import MEMORY_LIMIT, TOO_MUCH_MEMORY_CODE, limited_memory


def convert(
    data: bytes,
    file_format: str,
    charset: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
    processor_seconds: float = 0.0,
) -> ReadText:
    """Convert a file to Markdown, or a PDF to plain text.

    A process that runs out of memory ends with ``TOO_MUCH_MEMORY_CODE``, because it can't process another file.

    Args:
        data: The file.
        file_format: Its format.
        charset: The charset that the object names.
        memory_limit: Bytes of the process.
        processor_seconds: Maximum processor time, without that for loading libraries; SIGPROF then ends the process.
            0 for no limit.

    Raises:
        UnreadableDocument: The file is damaged, protected or hostile.
    """
    try:
        return conversion.convert(data, file_format, charset, _limits(memory_limit, processor_seconds))
    except MemoryError:
        os._exit(TOO_MUCH_MEMORY_CODE)


@contextmanager
def _limits(memory_limit: int, processor_seconds: float) -> Iterator[None]:
    with limited_memory(memory_limit):
        signal.setitimer(signal.ITIMER_PROF, processor_seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
