"""The manifest of a collection, which may come from elsewhere with its folder."""

from pathlib import Path

import pytest

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.search.engines.chroma.manifest import Counts, Manifest, chosen_embedding
from ragstack_common.settings.knowledge import KnowledgeSettings

SERVER = "openai:https://evil.example/v1#m"
BUILT = Manifest(
    collection="handbook",
    embedding="openai:m",
    embedding_choice=SERVER,
    dimension=8,
    space="cosine",
    chunk_size=1000,
    chunk_overlap=100,
    built_at="2026-11-01T00:00:00Z",
    total=Counts(),
)


def test_a_key_is_not_sent_to_a_server_that_only_the_manifest_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGSTACK_EMBEDDING_API_KEY", raising=False)
    assert chosen_embedding(KnowledgeSettings(), BUILT) == SERVER

    monkeypatch.setenv("RAGSTACK_EMBEDDING_API_KEY", "secret")
    with pytest.raises(ConfigurationError, match="is sent only to a server that you name: set EMBEDDING_MODEL=openai:"):
        chosen_embedding(KnowledgeSettings(), BUILT)

    assert chosen_embedding(KnowledgeSettings.from_env({"EMBEDDING_MODEL": SERVER}), BUILT) == SERVER


@pytest.mark.parametrize("pooling", [None, "mean"])
def test_a_model_that_was_moved_is_named_again(tmp_path: Path, pooling: str | None) -> None:
    """A collection that was copied from another machine names a folder of that machine."""
    mark = f"#{pooling}" if pooling else ""
    choice = f"onnx:{tmp_path / 'mymodel'}{mark}"
    built = BUILT.model_copy(
        update={"embedding": f"onnx:mymodel@ab12{mark}", "embedding_choice": choice, "pooling": pooling}
    )

    with pytest.raises(ConfigurationError, match=r"no such folder: set EMBEDDING_MODEL=onnx:FOLDER.*mymodel is in now"):
        chosen_embedding(KnowledgeSettings(), built)

    (tmp_path / "mymodel").mkdir()
    assert chosen_embedding(KnowledgeSettings(), built) == choice
