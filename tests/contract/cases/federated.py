"""Two halves of the documents searched as one, in memory and in two engines; and two stores that both hold all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragstack_common.retrieval import RetrievalBackend
from ragstack_common.retrieval.federated import FederatedBackend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.cases import chroma, milvus
from tests.contract.documents import Document
from tests.contract.in_memory import holding, opened_by


@contextmanager
def _in_two_engines(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    for engine in ("chroma", "milvus"):
        (folder / engine).mkdir()
    even = chroma.CASES[0].open(documents[::2], folder / "chroma")
    odd = milvus.CASES[0].open(documents[1::2], folder / "milvus")
    with even as make_even, odd as make_odd:
        yield lambda: FederatedBackend({"chroma": make_even(), "milvus": make_odd()}, timeout_seconds=PATIENCE_SECONDS)


CASES = [
    Case(
        "federated_halves",
        opened_by(
            lambda documents: {
                "type": "federated",
                "timeout_seconds": PATIENCE_SECONDS,
                "backends": {"even": holding(documents[::2]), "odd": holding(documents[1::2])},
            }
        ),
    ),
    Case("federated_engines", _in_two_engines),
]
