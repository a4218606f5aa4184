"""Each backend's store, made once for all tests of the contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragstack_common.search import RetrievalBackend
from tests.contract.case import Case
from tests.contract.cases import all_cases
from tests.contract.documents import DOCUMENTS, ONE_LONG_DOCUMENT

CASES = [
    pytest.param(case, id=case.name, marks=pytest.mark.xdist_group(f"backend {case.name}")) for case in all_cases()
]


@pytest.fixture(scope="module", params=CASES)
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
