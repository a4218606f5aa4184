"""Each backend's store, made once for all tests of the contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragstack_common.search import RetrievalBackend
from tests.contract.case import Case
from tests.contract.cases import all_cases
from tests.contract.documents import DOCUMENTS, ONE_LONG_DOCUMENT


@pytest.fixture(scope="module", params=all_cases(), ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def make(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RetrievalBackend]]:
    with case.open(DOCUMENTS, tmp_path_factory.mktemp(case.name)) as make:
        yield make


@pytest.fixture
def make_long(case: Case, tmp_path: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with case.open(ONE_LONG_DOCUMENT, tmp_path) as make:
        yield make
