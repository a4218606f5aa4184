"""Model servers that already run on this machine: Ollama, LM Studio and llama.cpp, at their usual ports."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import urllib3

from ragstack_local.errors import StackError

USUAL: Final = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080))
"""Names and ports. Source: their documentation."""

PROBE: Final = urllib3.Timeout(connect=0.3, read=1.0)
NO_ANSWERS: Final = ("embed", "minilm", "bge-", "rerank")
"""Parts of the names of models that cannot write answers."""


@dataclass(frozen=True)
class ModelServer:
    """A running server with an OpenAI-compatible interface.

    Attributes:
        models: Its models that may write answers, in its order.
    """

    name: str
    url: str
    models: tuple[str, ...]


def running_servers(usual: Iterable[tuple[str, int]] = USUAL) -> list[ModelServer]:
    """Return the servers that list a model which may write answers; takes at most 1.3 s."""
    usual = list(usual)
    with ThreadPoolExecutor(len(usual)) as pool:
        return [found for found in pool.map(_probed, *zip(*usual, strict=True)) if found is not None]


def _probed(name: str, port: int) -> ModelServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        listed = urllib3.request("GET", f"{url}/models", timeout=PROBE, retries=False).json()["data"]
        models = tuple(str(model["id"]) for model in listed)
    except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError):
        return None
    able = tuple(model for model in models if not any(part in model.lower() for part in NO_ANSWERS))
    return ModelServer(name, url, able) if able else None


def chosen_server(wanted: str, servers: Iterable[ModelServer]) -> tuple[str, str]:
    """Return the URL and the model for ``--llm``.

    Args:
        wanted: auto, or the name of a model.
        servers: The running servers.

    Raises:
        StackError: None of them has such a model.
    """
    servers = list(servers)
    for server in servers:
        found = server.models[0] if wanted == "auto" else next((each for each in server.models if each == wanted), None)
        if found:
            return server.url, found
    known = ", ".join(model for server in servers for model in server.models)
    raise StackError(
        f"No running model server has the model {wanted}: choose {known}"
        if known
        else "No model server was found at the ports of Ollama (11434), LM Studio (1234) and llama.cpp (8080): start"
        " one and load a model, or name another server:  ragstack up -- --llm-url URL --llm-model MODEL"
    )
