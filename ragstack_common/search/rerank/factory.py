"""Rerankers by name, as ``config.RERANKERS`` registers them; only the named one is imported."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.plugins import imported, third_parties
from ragstack_common.search.rerank.chunks import ChunkReranker, LexicalChunkReranker
from ragstack_common.search.rerank.lexical import LexicalReranker
from ragstack_common.settings.names import RERANKERS

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
    own, others = RERANKERS.get(name), third_parties(ENTRY_POINTS)
    if own is None and name not in others:
        forms = [*(entry.form for entry in RERANKERS.values()), *sorted(others)]
        raise ConfigurationError(f"There is no reranker {name!r}: choose {', '.join(forms)}")
    place, extra = (others[name], None) if own is None else (own.place, own.extra)
    maker: Callable[..., ChunkReranker] = imported(place, extra, f"The reranker {name}")
    return maker
