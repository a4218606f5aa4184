"""A process that answers what it is told, for tests of warm processes."""

import json
import os
import sys
import time

from ragstack_common.reading.warm_process import serve


def answer(message: bytes) -> bytes:
    match message.split():
        case [b"end", code]:
            os._exit(int(code))
        case [b"wait"]:
            time.sleep(600)
        case [b"environment"]:
            return json.dumps([os.getpid(), *os.environ]).encode()
    return message


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), answer)
