"""Backends by configuration."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.errors import ConfigurationError, MissingPackageError, UnknownEngineError
from ragstack_common.core.plugins import third_parties
from ragstack_common.search import (
    RetrievalBackend,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    Wrapper,
    create_retrieval_backend,
    factory,
    known_backends,
    register_backend,
)

ENGINE_OF_ANOTHER_PACKAGE = """
from ragstack_common.search import RetrievalBackend, RetrievedChunk


class ElasticBackend(RetrievalBackend):
    def __init__(self, es_config):
        self.es_config = es_config

    async def retrieve(self, query, top_k=5, min_score=None, filters=None):
        return [RetrievedChunk(content=query, score=1.0, source=self.es_config)][:top_k]
"""


class Plain(RetrievalBackend):
    def __init__(self, path: str, size: int = 1) -> None:
        if size < 1:
            raise ValueError(f"size must be 1 or more, not {size}")
        self.path = path

    async def retrieve(self, *_: Any, **__: Any) -> list[RetrievedChunk]:
        return []


class Around(Wrapper):
    def __init__(self, backend: RetrievalBackend, factor: float = 1.0) -> None:
        super().__init__(backend)
        self.factor = factor

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        return await self.backend.search(request)


class Several(Plain):
    def __init__(self, backends: Any) -> None:
        super().__init__("several")
        self.backends = backends


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(factory, "_registered", {})
    for name, maker in (("plain", Plain), ("around", Around), ("several", Several)):
        register_backend(name, maker)
    yield
    third_parties.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package with an entry point as pip would: the module, and its description next to it."""
    (tmp_path / "ragstack_elastic_for_tests.py").write_text(ENGINE_OF_ANOTHER_PACKAGE)
    description = tmp_path / "ragstack_elastic_for_tests-1.0.dist-info"
    description.mkdir()
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: ragstack-elastic-for-tests\nVersion: 1.0\n")
    (description / "entry_points.txt").write_text(
        "[ragstack.engines]\n"
        "elasticsearch = ragstack_elastic_for_tests:ElasticBackend\n"
        "broken = ragstack_elastic_for_tests:NoSuchClass\n"
        "absent = no_such_package_at_all:Backend\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    third_parties.cache_clear()
    return "elasticsearch"


@pytest.mark.parametrize("name", ["x", None, 7, {}])
def test_an_unknown_type_is_an_error_that_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(ValueError, match="Unknown backend type: ") as caught:
        create_retrieval_backend({"type": name})

    assert isinstance(caught.value, UnknownEngineError)
    assert f"Unknown backend type: {name}" in str(caught.value)
    assert "bedrock, cached, chroma" in str(caught.value).replace("balanced, bedrock", "bedrock").replace(
        "around, ", ""
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "path"), ({"path": "p", "colour": "red"}, "colour"), ({"path": "p", "size": 0}, "size must be 1 or more")],
)
def test_wrong_arguments_are_an_error_that_names_the_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match="The backend plain cannot be created") as caught:
        create_retrieval_backend({"type": "plain", **options})

    assert message in str(caught.value)
    assert isinstance(caught.value.__cause__, TypeError | ValueError)


def test_wrappers_are_made_around_what_their_configuration_holds() -> None:
    inner = {"type": "around", "factor": 2.0, "backend": {"type": "plain", "path": "p"}}

    backend = create_retrieval_backend({"type": "around", "backend": inner})

    assert isinstance(backend, Around)
    assert isinstance(backend.backend, Around)
    assert backend.backend.factor == 2.0
    assert isinstance(backend.backend.backend, Plain)


@pytest.mark.parametrize("as_list", [True, False])
def test_several_backends_are_made_of_a_list_or_of_an_object(as_list: bool) -> None:
    configs = {"a": {"type": "plain", "path": "a"}, "b": {"type": "plain", "path": "b"}}

    several = create_retrieval_backend({"type": "several", "backends": list(configs.values()) if as_list else configs})

    assert isinstance(several, Several)
    made = several.backends if as_list else list(several.backends.values())
    assert [backend.path for backend in made] == ["a", "b"]
    assert as_list or list(several.backends) == ["a", "b"]


def test_a_registered_name_takes_over_one_that_is_built_in() -> None:
    register_backend("chroma", Plain)

    assert isinstance(create_retrieval_backend({"type": "chroma", "path": "p"}), Plain)


def test_an_engine_of_another_package_is_imported_on_demand(installed: str) -> None:
    sys.modules.pop("ragstack_elastic_for_tests", None)
    assert installed in known_backends()
    assert "ragstack_elastic_for_tests" not in sys.modules

    backend = create_retrieval_backend({"type": installed, "es_config": "http://127.0.0.1:9200"})

    assert type(backend).__name__ == "ElasticBackend"


@pytest.mark.usefixtures("installed")
def test_an_entry_point_whose_package_is_gone_says_which() -> None:
    with pytest.raises(MissingPackageError, match="no_such_package_at_all"):
        create_retrieval_backend({"type": "absent"})


@pytest.mark.usefixtures("installed")
def test_an_entry_point_that_names_nothing_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"broken.*NoSuchClass"):
        create_retrieval_backend({"type": "broken"})


@pytest.mark.parametrize("name", factory._BUILT_IN)
def test_every_built_in_backend_can_be_imported(name: str) -> None:
    module, _, attribute = factory._BUILT_IN[name].partition(":")
    try:
        backend = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("ragstack"):
            raise
        pytest.skip(f"{error.name} is not installed")

    assert issubclass(backend, RetrievalBackend)
