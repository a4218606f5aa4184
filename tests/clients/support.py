"""Clients in a virtual environment of their own, with the local Bedrock as another process."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.local_bedrock.support import REGION
from tests.support.children import END_SECONDS, child

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / ".clients" / "bin"
LLAMA_INDEX = ROOT / ".llama-index" / "bin"
SCRIPTS = Path(__file__).parent / "scripts"
HOW_TO_INSTALL = "the clients are not installed: make clients"


class ClientError(Exception):
    """What a client raised."""


@dataclass(frozen=True)
class Client:
    """A client's process that answers one request after the other."""

    process: subprocess.Popen[str]

    def ask(self, call: str, **arguments: Any) -> Any:
        """Call a function of the client's script.

        Raises:
            ClientError: The client raised something.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"call": call, **arguments}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"the client's process ended with {self.process.wait(END_SECONDS)}"
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["result"]


def environment(url: str) -> dict[str, str]:
    """What a user sets to send any AWS client to a local Bedrock, and nothing of this machine's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    return {
        **kept,
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_PAGER": "",
    }


@contextmanager
def client(script: str, url: str, *, programs: Path = CLIENTS, **variables: str) -> Iterator[Client]:
    """Run a script of this folder with the clients' Python."""
    with child(
        [programs / "python", SCRIPTS / f"{script}.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(url), **variables},
    ) as process:
        yield Client(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(END_SECONDS)


@contextmanager
def local_bedrock(data_dir: Path, *arguments: str) -> Iterator[str]:
    """Run the local Bedrock as users run it; yields its URL."""
    with child(
        [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", data_dir, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://[\d.]+:\d+", line)
        try:
            assert found, f"the local Bedrock did not say where it listens: {line!r}"
            yield found.group()
        finally:
            process.terminate()
            process.wait(END_SECONDS)


def aws(url: str, *arguments: str, **members: Any) -> Any:
    """Run the AWS command line and read its answer.

    Args:
        url: The local Bedrock.
        arguments: As on the command line.
        members: Options whose values are JSON.

    Raises:
        ClientError: It ended with an error; the message is what it printed.
    """
    options = [part for name, value in members.items() for part in (f"--{name.replace('_', '-')}", _json(value))]
    done = subprocess.run(
        [CLIENTS / "aws", *arguments, *options],
        capture_output=True,
        text=True,
        env=environment(url),
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise ClientError(done.stderr.strip())
    return json.loads(done.stdout) if done.stdout.strip() else {}


def _json(value: Any) -> str:
    return json.dumps(value) if isinstance(value, Mapping | list) else str(value)
