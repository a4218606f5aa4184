"""Send the spans of a search to a server."""

import asyncio
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

from ragstack_common.core.errors import KnowledgeBaseNotFoundError
from ragstack_common.search import create_retrieval_backend
from ragstack_common.search.tracing import TracingSettings, export_spans

received: list[bytes] = []


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def search() -> None:
    async with create_retrieval_backend({"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"}) as backend:
        with suppress(KnowledgeBaseNotFoundError):
            await backend.retrieve("anything")


with HTTPServer(("127.0.0.1", 0), Collector) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    finish = export_spans(TracingSettings(), f"http://127.0.0.1:{server.server_port}/v1/traces")
    asyncio.run(search())
    finish()
    server.shutdown()
assert any(b"knowledge_base" in body or b"ragstack" in body for body in received), received
