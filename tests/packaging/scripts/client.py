"""Run every command that needs only the URL of an API, and see that its request arrives."""

import json
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

RAGSTACK = Path(sys.executable).parent / "ragstack"
ARGUMENTS = {
    "ingest": ["leave.md"],
    "sync": ["."],
    "delete": ["leave.md", "--yes"],
    "download": ["s3://documents/leave.md"],
    "replay": ["s3://documents/leave.md"],
    "discard": ["message"],
    "query": ["leave"],
    "ask": ["leave"],
    "access": ["show"],
    "conversations": ["list"],
    "gaps": ["list"],
    "judgments": ["export", "judged"],
}
REFUSAL = "Closed: the archive opens at nine"


class Handler(BaseHTTPRequestHandler):
    """Refuses everything, except to list the corpora."""

    def do_GET(self) -> None:
        """Answer."""
        code, _, message = REFUSAL.partition(": ")
        is_open = self.path == "/api/corpora"
        answer = {"corpora": [], "complete": True} if is_open else {"error": {"code": code, "message": message}}
        body = json.dumps(answer).encode()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200 if is_open else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line."""
    return subprocess.run([RAGSTACK, *arguments], input="leave\n", capture_output=True, text=True, check=False)


Path("leave.md").write_text("Employees have thirty days of leave.")
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

listed = re.search(r"need only the URL of an API: (.+?)\.", " ".join(run("--help").stdout.split()))
assert listed
commands = set(re.split(", | and ", listed[1]))
assert commands > ARGUMENTS.keys()
# People sign in at an issuer, not at the API.
for command in sorted(commands - {"mcp", "corpora", "login", "logout"}):
    done = run(command, *ARGUMENTS.get(command, []), "--api-url", url)
    assert REFUSAL in done.stderr + done.stdout, (command, done)
assert run("corpora", "--api-url", url).returncode == 0
assert "No such option" not in run("login", "--api-url", url).stderr
assert run("logout", "--api-url", url).returncode == 0

assert "needs the package mcp" in (mcp := run("mcp", "--api-url", url)).stderr, mcp
assert "ragstack-kb[mcp]" in mcp.stderr, mcp
assert "ragstack-kb[chroma]" in (build := run("build", "leave.md")).stderr, build
assert "ragstack-kb[evaluation]" in (measured := run("eval", "search", ".")).stderr, measured
