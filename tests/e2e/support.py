"""A local stack as a user runs it: the real command line, the real cdk, on free ports and a folder of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import urllib3

from ragstack_common.core.uris import s3_uri
from ragstack_common.ingestion import batch_check_document_statuses
from ragstack_common.ingestion.requests import source_type_of
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import DocumentRecord
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import ENDED, open_registry, read_statuses
from ragstack_local.files.bucket import Bucket
from tests.ragstack_local.support import ragstack
from tests.support.children import start_child
from tests.support.ports import free_ports
from tests.support.waiting import eventually

T = TypeVar("T")

# Who waits asks ten times a second, and a client takes longer to make than to ask.
registry = cache(open_registry)
client = cache(Connection.client)

ROOT = Path(__file__).resolve().parents[2]
RAGSTACK = Path(sys.executable).with_name("ragstack")
START_SECONDS = 200.0
STOP_SECONDS = 60.0
MISLEADING = {"AWS_PROFILE": "nobody", "AWS_DEFAULT_REGION": "eu-south-2", "HTTP_PROXY": "http://127.0.0.1:9"}
"""AWS settings of a machine that must have no effect."""


@dataclass
class LocalStack:
    """One data folder, and the stack that runs on it now."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(5))
    process: "subprocess.Popen[bytes] | None" = None
    context: tuple[str, ...] = ()
    auth: str = "none"
    variables: dict[str, str] = field(default_factory=dict)
    bedrock_options: ClassVar[Sequence[str]] = ("--quotas",)

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            **MISLEADING,
            "RAGSTACK_DATA": str(self.folder / "home"),
            "COLUMNS": "200",
            **self.variables,
        }

    @property
    def options(self) -> list[str]:
        port, bedrock_port, answers_port, issuer_port, console_port = map(str, self.ports)
        ports = ["--port", port, "--bedrock-port", bedrock_port, "--answers-port", answers_port]
        ports += ["--issuer-port", issuer_port, "--console-port", console_port]
        context = [part for value in self.context for part in ("--context", value)]
        return [*ports, "--data-dir", "data", *context]

    @property
    def connection(self) -> Connection:
        return Connection.from_running_stack(self.folder / "home" / "running.json")

    @property
    def log(self) -> Path:
        return self.folder / "up.log"

    def launch(self) -> None:
        """Begin to start, from another folder than the checkout."""
        with self.log.open("wb") as log:
            self.process = start_child(
                [RAGSTACK, "up", "--auth", self.auth, *self.options, "--", *self.bedrock_options],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start, and wait until it says where it is."""
        self.launch()
        process = self.process
        assert process is not None

        def look() -> bool:
            assert process.poll() is None, self.log.read_text()
            fields = running.read(self.folder / "home" / "running.json")
            return fields is not None and "api_url" in fields

        eventually(look, START_SECONDS)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask the stack to end; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def kill_all(self) -> None:
        """Leave nothing, whatever state it is in."""
        if self.process is not None:
            # With /proc, the other processes are found by their environment; an orderly end takes many seconds.
            end = self.process.kill if Path("/proc").is_dir() else self.process.terminate
            end()
            self.process.wait(STOP_SECONDS)
        self.kill_every_process()

    def kill_every_process(self) -> None:
        """End all at once, as a power cut does."""
        for process_id in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)

    def processes(self) -> set[int]:
        """Find every process that was started for this stack, wherever it hangs in the tree, by its environment."""
        mark = f"RAGSTACK_DATA={self.folder / 'home'}".encode()
        found = set()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    found.add(int(environ.parent.name))
            except OSError:
                continue
        return found - {os.getpid()}

    def run(self, *arguments: str | Path, timeout: float = 120.0) -> "subprocess.CompletedProcess[str]":
        """Run a command of the command line against this stack; in this process if it starts and ends no other."""
        if arguments[0] not in ("up", "demo", "down"):
            home = str(self.folder / "home")
            settings = {**MISLEADING, "RAGSTACK_DATA": home, "COLUMNS": "200", **self.variables}
            return ragstack(*arguments, data=self.folder, **settings)
        return subprocess.run(
            [RAGSTACK, *map(str, arguments)],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def put(self, key: str, body: bytes | str) -> str:
        """Upload an object as any program would; returns its URI."""
        content = body if isinstance(body, bytes) else body.encode()
        client(self.connection, "s3").put_object(Bucket=self.connection.bucket, Key=key, Body=content)
        return s3_uri(self.connection.bucket, key)

    def delete(self, key: str) -> None:
        client(self.connection, "s3").delete_object(Bucket=self.connection.bucket, Key=key)

    def statuses(self, *uris: str) -> dict[str, DocumentStatus]:
        """Ask the registry; what it has forgotten, or never knew, is as the knowledge base says."""
        records = self.records(*uris)
        forgotten = [uri for uri, record in records.items() if not record.revision or record.status == "DELETED"]
        known = {uri: DocumentStatus(record.status, record.reason) for uri, record in records.items()}
        return known | (self.known(*forgotten) if forgotten else {})

    def records(self, *uris: str) -> dict[str, DocumentRecord]:
        return registry(self.connection).read(uris)

    def known(self, *uris: str) -> dict[str, DocumentStatus]:
        """Ask the knowledge base."""
        connection = self.connection
        agent = client(connection, "bedrock-agent")
        return batch_check_document_statuses(
            connection.knowledge_base_id,
            connection.data_source_id,
            list(uris),
            client=agent,
            source_type=source_type_of(connection.vector_store),
        )

    def settled(self, *uris: str) -> dict[str, DocumentStatus]:
        """Wait until every document is in a final state for the current content of the bucket."""
        bucket = Bucket.for_stack(self.connection)
        awaited = {uri: bucket.current(uri) for uri in uris}

        def look() -> dict[str, DocumentStatus] | None:
            found = read_statuses(registry(self.connection), awaited)
            return found if all(status in ENDED for status in found.values()) else None

        return eventually(look)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request through API Gateway; returns status and body."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        answer = urllib3.request(
            method,
            self.connection.api_url + path,
            body=data,
            headers={"Content-Type": "application/json", **headers},
            timeout=120,
            retries=False,
        )
        return answer.status, json.loads(answer.data)

    def search(self, query: str, **more: Any) -> list[dict[str, Any]]:
        status, answer = self.request("POST", "/api/retrieve", {"query": query, **more})
        assert status == 200, answer
        assert answer["complete"], answer
        return list(answer["results"])

    def found(self, query: str, words: str, **more: Any) -> dict[str, Any]:
        """Search until a result holds the words."""
        return eventually(lambda: next((r for r in self.search(query, **more) if words in r["content"]), None))


def iterate(stack: LocalStack) -> Iterator[LocalStack]:
    """Run a stack for as long as a fixture lasts."""
    try:
        stack.start()
        yield stack
    finally:
        stack.kill_all()
