"""Show documents in a process of their own: a page of a PDF or the text, and where the quoted characters are.

The process has limits of memory, and the caller a limit of time: a file of 600 bytes can need gigabytes. Messages and
answers are JSON, followed by the file if the process does not have it open::

    {"name": "URI#version", "format": "pdf" or null, "page": 2, "texts": [...], ...} <line end> <file>
    {"wanted": true}                        send it again with the file, and the charset of its Content-Type, and with
                                            its recognized pages, if it has some: "recognized", as ocr/words writes them
    {"refused": "cannot be shown because"}  or {"invalid": "page: the document has 2 pages"}
    {"shown": {"pages": 2, "page": 2, "image": ..., "text": ..., "marks": [...]}}
"""

import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

from ragstack_common.reading import formats
from ragstack_common.reading.conversion import convert, read_directly
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import TOO_MUCH_MEMORY_CODE, limited_memory, watch
from ragstack_common.reading.marking import InvalidView, OpenDocument, Wish, view
from ragstack_common.reading.ocr import shown
from ragstack_common.reading.ocr.words import RecognizedPage
from ragstack_common.reading.warm_process import serve

MAX_KEPT_DOCUMENTS: Final = 2
"""Documents that the process keeps open: people page through one."""


class OpenDocuments:
    """Answers messages, and keeps the last documents open.

    Args:
        memory_limit: Bytes of this process.
        clock: Returns seconds.
    """

    def __init__(self, memory_limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory_limit, self._clock = memory_limit, clock
        self._kept: OrderedDict[str, OpenDocument] = OrderedDict()

    def answer(self, message: bytes) -> bytes:
        """Answer one message; a process that runs out of memory ends."""
        head, has_file, data = message.partition(b"\n")
        request = json.loads(head)
        name, file_format, charset = request.pop("name"), request.pop("format"), request.pop("charset", None)
        recognized = [RecognizedPage.from_json(page) for page in request.pop("recognized", ())]
        try:
            if name not in self._kept and has_file:
                known = file_format or formats.of_content(data, name.rpartition("#")[0])
                self._kept[name] = _open(data, known, charset, recognized, self._memory_limit)
            opened = self._opened(name)
            if opened is None:
                return json.dumps({"wanted": True}).encode()
            with limited_memory(self._memory_limit):
                found = view(opened, Wish(**request), self._clock)
        except UnreadableDocument as error:
            return json.dumps({"refused": str(error)}).encode()
        except InvalidView as error:
            return json.dumps({"invalid": str(error)}).encode()
        except MemoryError:
            os._exit(TOO_MUCH_MEMORY_CODE)
        return json.dumps({"shown": asdict(found)}).encode()

    def _opened(self, name: str) -> OpenDocument | None:
        if name not in self._kept:
            return None
        self._kept.move_to_end(name)
        while len(self._kept) > MAX_KEPT_DOCUMENTS:
            self._kept.popitem(last=False)
        return self._kept[name]


def _open(
    data: bytes, file_format: str, charset: str | None, recognized: Sequence[RecognizedPage], memory_limit: int
) -> OpenDocument:
    formats.check(data, file_format)
    if file_format == "pdf" or file_format in formats.IMAGES:
        with limited_memory(memory_limit):
            return OpenDocument(file_format, paged=shown.opened(data, file_format, recognized))
    if file_format in formats.READ_DIRECTLY:
        found = read_directly(data, file_format, charset)
    else:
        found = convert(data, file_format, charset, limited_memory(memory_limit))
    return OpenDocument(file_format, found.text, found.title)


def main() -> None:
    """Serve the process that started this one."""
    import PIL.Image  # noqa: F401, PLC0415 - before the memory is limited
    import pypdfium2  # noqa: F401, PLC0415 - the same

    messages, answers, memory_limit = map(int, sys.argv[1:])
    watch(memory_limit)
    serve(messages, answers, partial(OpenDocuments.answer, OpenDocuments(memory_limit)))


if __name__ == "__main__":
    main()
