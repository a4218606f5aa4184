"""Each backend's store, made once for all tests of the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.case import Case, Make
from tests.contract.cases import all_cases
from tests.contract.documents import DOCUMENTS, ONE_LONG_DOCUMENT

CASES = [
    pytest.param(case, id=case.name, marks=pytest.mark.xdist_group(f"backend {case.name}")) for case in all_cases()
]


@pytest.fixture(scope="session", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    assert isinstance(request.param, Case)
    return request.param


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the cases that a module does not name in its CASES; all modules share the store of a case."""
    items[:] = [item for item in items if not isinstance(item, pytest.Function) or _is_tested(item)]


def _is_tested(item: pytest.Function) -> bool:
    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    return not isinstance(case, Case) or case.name in getattr(item.module, "CASES", {case.name})


@pytest.fixture(scope="session")
def make(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    with case.open(DOCUMENTS, tmp_path_factory.mktemp(case.name)) as make:
        yield make


@pytest.fixture
def make_long(case: Case, tmp_path: Path) -> Iterator[Make]:
    if not case.opens_twice:
        pytest.skip("another case has the same engine, and a second store takes long")
    with case.open(ONE_LONG_DOCUMENT, tmp_path) as make:
        yield make
