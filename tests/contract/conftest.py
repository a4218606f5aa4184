"""Each backend's store, made once for all tests of the contract."""

from collections.abc import Callable, Iterator

import pytest

from ragstack_common.retrieval import RetrievalBackend
from tests.contract.case import Case
from tests.contract.cases import all_cases
from tests.contract.documents import DOCUMENTS


@pytest.fixture(scope="module", params=all_cases(), ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def make(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RetrievalBackend]]:
    with case.open(DOCUMENTS, tmp_path_factory.mktemp(case.name)) as make:
        yield make
