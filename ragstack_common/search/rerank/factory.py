"""Rerankers by name, as ``config.RERANKERS`` registers them; only the named one is imported."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

from ragstack_common.config import RERANKERS
from ragstack_common.core.errors import ConfigurationError, needs_extra
from ragstack_common.search.rerank.chunks import ChunkReranker, LexicalChunkReranker
from ragstack_common.search.rerank.lexical import LexicalReranker

ENTRY_POINTS: Final = "ragstack.rerankers"
"""Entry points of other packages' rerankers: ``acme = "package.module:AcmeReranker"``.

The class is called with TEXT for ``acme:TEXT``, and with the options of a configuration as keyword arguments.
"""

RerankerChoice: TypeAlias = ChunkReranker | LexicalReranker | Mapping[str, Any] | str
"""A reranker, its name in ``config.RERANKERS``, or ``{"type": NAME, ...}`` with the arguments of its class."""


def load_reranker(choice: RerankerChoice) -> ChunkReranker:
    """Return the chosen reranker.

    Raises:
        ConfigurationError: The reranker is unknown, or cannot be created; the message lists the known ones.
        MissingPackageError: Its package is not installed.
    """
    if isinstance(choice, LexicalReranker):
        return LexicalChunkReranker(choice)
    if not isinstance(choice, str | Mapping):
        if isinstance(choice, ChunkReranker):
            return choice
        raise ConfigurationError(
            f"A {type(choice).__name__} is not a reranker: it needs name, max_chunks, rerank and close"
        )
    options = {"type": choice} if isinstance(choice, str) else dict(choice)
    name, _, argument = str(options.pop("type", "")).partition(":")
    arguments = [argument] if argument else []
    try:
        return _maker(name)(*arguments, **options)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The reranker {name} cannot be created from this configuration: {error}") from error


def _maker(name: str) -> Callable[..., ChunkReranker]:
    if entry := RERANKERS.get(name):
        module, _, attribute = entry.place.partition(":")
        with needs_extra(entry.extra, f"The reranker {name}"):
            maker: Callable[..., ChunkReranker] = getattr(importlib.import_module(module), attribute)
        return maker
    others = _third_parties()
    if name in others:
        with needs_extra(None, f"The reranker {name}"):
            loaded: Callable[..., ChunkReranker] = others[name].load()
        return loaded
    forms = [*(entry.form for entry in RERANKERS.values()), *sorted(others)]
    raise ConfigurationError(f"There is no reranker {name!r}: choose {', '.join(forms)}")


@cache
def _third_parties() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
