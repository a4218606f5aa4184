"""The slices around backends that have none: one of somebody else's, and the chroma engine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ragstack_common.retrieval import RetrievalBackend
from ragstack_common.retrieval.multislice import MultiSliceBackend
from tests.contract.case import PATIENCE_SECONDS, Case, Opened
from tests.contract.cases import third_party
from tests.contract.documents import Document


def _around(inner: Case) -> Case:
    @contextmanager
    def opened(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
        with inner.open(documents, folder) as make:
            yield lambda: MultiSliceBackend(make(), timeout_seconds=PATIENCE_SECONDS)

    def open_(documents: Sequence[Document], folder: Path) -> Opened:
        return opened(documents, folder)

    return replace(inner, name=f"multislice_{inner.name}", open=open_, metadata_filter=True)


def _engines() -> list[Case]:
    try:
        from tests.contract.cases import chroma  # noqa: PLC0415 - its package may be missing
    except ImportError:
        return []
    return chroma.CASES[:1]


CASES = [_around(inner) for inner in [*third_party.CASES, *_engines()]]
