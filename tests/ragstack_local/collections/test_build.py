"""Collections built from files, in a real store."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.embedding import EmbeddingError, HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_local.collections.documents import BuildPlan, parse_version
from ragstack_local.files.uploads import select

chromadb = pytest.importorskip("chromadb")

from ragstack_common.search.engines.chroma.manifest import Manifest  # noqa: E402 - after the extra is known to be there
from ragstack_local.collections.build import Report, build  # noqa: E402 - the same

TEXT = "# Leave\n\nThirty days of annual leave.\n\n## Carrying over\n\n" + "Unused days are carried over. " * 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    for name, text in {
        "v2/leave.md": TEXT,
        "v10/travel.md": "# Travel\n\nBook trains first.",
        "note.txt": "A note.",
    }.items():
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return made


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Callable[..., Report]:
    def built(plan: BuildPlan | None = None, embedding: Any = None, **options: Any) -> Report:
        return build(
            select([folder]).files,
            tmp_path / "store",
            "handbook",
            plan or BuildPlan("company", "hashed"),
            embedding or HashedEmbedding(),
            folder_name="handbook",
            **options,
        )

    return built


@pytest.fixture
def base(tmp_path: Path) -> Callable[[], KnowledgeBase]:
    return lambda: KnowledgeBase("handbook", tmp_path / "store", environment={})


def chunks(base: KnowledgeBase) -> dict[str, Mapping[str, Any]]:
    found = base.collection.get()
    return dict(zip(found["ids"], found["metadatas"] or [], strict=True))


def test_every_chunk_has_its_source(run: Callable[..., Report], base: Callable[[], KnowledgeBase]) -> None:
    run()

    documents = base().retrieve("unused days carried over", n_results=10, filters={"file_name": "leave.md"})

    by_index = {document["metadata"]["chunk_index"]: document for document in documents}
    assert sorted(by_index) == [0, 1]
    first, second = by_index[0]["metadata"], by_index[1]["metadata"]
    assert (first["source"], first["path"]) == ("handbook/v2/leave.md", "handbook/v2/leave.md")
    assert (first["corpus"], first["version"], first["chunk_count"]) == ("company", "2", 2)
    assert (first["section_title"], second["section_title"]) == ("Leave", "Carrying over")
    assert first["chunk_size"] == len(by_index[0]["content"]) <= 1_000
    assert TEXT[second["start_index"] :].startswith(by_index[1]["content"][:100])


def test_a_second_run_changes_nothing(run: Callable[..., Report], base: Callable[[], KnowledgeBase]) -> None:
    first = run()
    before = chunks(base())

    second = run()

    assert first.files == {"added": 3}
    assert second.files == {"unchanged": 3}
    assert chunks(base()) == before


def test_changed_files_are_updated_and_deleted_ones_removed(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], folder: Path
) -> None:
    run()
    (folder / "v10/travel.md").write_text("# Travel\n\nBook the zeppelin first.")
    (folder / "note.txt").unlink()

    report = run()

    assert report.files == {"unchanged": 1, "updated": 1, "removed": 1}
    everything = [document["content"] for document in base().retrieve("book first note", n_results=20)]
    assert "# Travel\n\nBook the zeppelin first." in everything
    assert not any("trains" in text or "A note" in text for text in everything)


def test_another_plan_rebuilds_everything(run: Callable[..., Report], base: Callable[[], KnowledgeBase]) -> None:
    run()

    report = run(BuildPlan("company", "hashed", version="9", chunk_size=300, chunk_overlap=20))

    assert report.files == {"updated": 3}
    assert base().get_versions() == ["9"]
    assert max(metadata["chunk_size"] for metadata in chunks(base()).values()) <= 300


def test_another_corpus_is_added_to_the_collection(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase]
) -> None:
    run()

    report = run(BuildPlan("other", "hashed"))

    assert report.files == {"added": 3}
    assert report.manifest is not None
    assert {name: of.documents for name, of in report.manifest.corpora.items()} == {"company": 3, "other": 3}
    with base() as found:
        assert len(found.retrieve("note", 20, filters={"corpus": "other", "file_name": "note.txt"})) == 1


def test_a_sidecar_overrides_the_corpus_and_version_of_a_build(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], folder: Path
) -> None:
    sidecar = folder / "v2/leave.md.metadata.json"
    sidecar.write_text('{"metadataAttributes": {"corpus": "people", "version": "2026", "file_hash": "mine"}}')
    first, second = run(), run()
    (found,) = {(each["corpus"], each["version"]) for each in chunks(base()).values() if "leave" in each["source"]}
    (folder / "v2/leave.md").unlink()
    sidecar.unlink()

    third = run()

    assert found == ("people", "2026")
    assert (first.files, second.files, third.files) == ({"added": 3}, {"unchanged": 3}, {"unchanged": 2, "removed": 1})
    assert base().get_versions() == ["10", "current"]


def test_an_interrupted_run_is_finished(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], folder: Path
) -> None:
    run()
    with base() as found:
        found.collection.delete(where={"$and": [{"file_name": "leave.md"}, {"chunk_index": 1}]})

    report = run()

    assert report.files == {"unchanged": 2, "updated": 1}
    with base() as found:
        assert len(found.retrieve("days", 20, filters={"file_name": "leave.md"})) == 2


def test_a_failed_file_is_named_and_keeps_its_earlier_chunks(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], folder: Path
) -> None:
    run()
    (folder / "v10/travel.md").write_bytes(bytes(range(32)) * 100)
    (folder / "broken.pdf").write_bytes(b"no pdf")
    (folder / "zebra.md").write_text("The zebra comes last.")

    report = run()

    assert {failure.source: failure.reason for failure in report.failures} == {
        "handbook/broken.pdf": "The file's content is not that of a .pdf file: check its extension.",
        "handbook/v10/travel.md": "The file's content is not text: check its extension.",
    }
    assert report.files == {"unchanged": 2, "added": 1, "failed": 2}
    with base() as found:
        assert found.retrieve("trains", 1)[0]["content"].endswith("Book trains first.")
        assert found.retrieve("zebra", 1)[0]["content"] == "The zebra comes last."


def test_the_manifest_has_no_paths_of_the_machine(run: Callable[..., Report], folder: Path) -> None:
    """It is copied with the collection. A file may be deleted or locked after its folder was listed."""
    leave = folder / "v2/leave.md"

    def delete_one(_outcome: str) -> None:
        leave.unlink(missing_ok=True)

    report = run(done=delete_one)

    assert report.manifest is not None
    assert [failure.reason for failure in report.failures] == ["It cannot be read: No such file or directory"]
    assert str(folder) not in report.manifest.model_dump_json()


def test_attributes_of_a_sidecar_are_kept_and_updated(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], folder: Path
) -> None:
    sidecar = folder / "note.txt.metadata.json"
    sidecar.write_text(json.dumps({"metadataAttributes": {"topic": "notes", "tags": ["a", "b"], "year": 2025}}))
    run()
    with base() as found:
        (document,) = found.retrieve("note", filters={"tags": {"$listContains": "b"}})
    sidecar.write_text(json.dumps({"metadataAttributes": {"topic": "memos"}}))

    report = run()

    assert (document["metadata"]["topic"], document["metadata"]["year"]) == ("notes", 2025)
    assert report.files["updated"] == 1
    with base() as found:
        (document,) = found.retrieve("note", filters={"topic": "memos"})
    assert "tags" not in document["metadata"]


def test_the_manifest_says_what_is_in_the_store(run: Callable[..., Report], folder: Path, tmp_path: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"no pdf")

    report = run(clock=lambda: 0.0)

    stored = Manifest.model_validate_json((tmp_path / "store/manifests/handbook.json").read_bytes())
    assert stored == report.manifest
    assert (stored.embedding, stored.dimension, stored.chunk_size, stored.chunk_overlap) == ("hashed", 1024, 1000, 100)
    assert stored.built_at == "1970-01-01T00:00:00+00:00"
    assert (stored.total.documents, stored.total.chunks) == (3, 4)
    assert {name: of.chunks for name, of in stored.versions.items()} == {"10": 1, "2": 2, "current": 1}
    assert report.manifest_path == tmp_path / "store/manifests/handbook.txt"
    text = report.manifest_path.read_text()
    assert "embedding = hashed (1024 dimensions, cosine)\n" in text
    assert "corpus company: 3 documents, 4 chunks\n" in text
    assert "failed: handbook/broken.pdf: The file's content is not that of a .pdf file" in text


def test_a_foreign_or_damaged_manifest_is_an_error(
    run: Callable[..., Report], base: Callable[[], KnowledgeBase], tmp_path: Path
) -> None:
    run()
    file = tmp_path / "store/manifests/handbook.json"
    file.write_text(file.read_text().replace('"hashed"', '"onnx:other"'))

    with base() as found, pytest.raises(EmbeddingError, match="run `ragstack build` again, or delete the manifest"):
        found.search("days")

    file.write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read: run `ragstack build` again"):
        base()


def test_a_collection_of_others_is_not_built_into(tmp_path: Path, run: Callable[..., Report]) -> None:
    with chromadb.PersistentClient(tmp_path / "store") as client:
        client.create_collection("handbook", embedding_function=None)

    with pytest.raises(ConfigurationError, match="was not built here"):
        run()


def test_another_embedding_is_not_mixed_in(run: Callable[..., Report]) -> None:
    class Other(HashedEmbedding):
        name = "other"

    run()

    with pytest.raises(EmbeddingError, match="made with the embedding hashed, not with other"):
        run(BuildPlan("company", "other"), Other())


def test_the_page_s_examples_run_on_a_collection_that_was_built(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langgraph")
    page = (Path(__file__).parents[3] / "docs/LIBRARY.md").read_text(encoding="utf-8")
    section = page.partition("## KnowledgeBase\n")[2].partition("### An agent\n")[0]
    examples = re.findall(r"^```python\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    build(select([folder]).files, Path("chroma"), "handbook", BuildPlan("company", "hashed"), HashedEmbedding())

    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)

    assert len(examples) == 3
    assert "### Document 1: handbook/" in names["result"]["response"]
    assert names["versions"] == ["2", "10", "current"]
    assert names["stored"]["total"]["chunks"] == 4


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("docs/v3/intro.md", "3"),
        ("src-markdown/prev/v3/core/X.md", "3"),
        ("v2.1/x.md", "2.1"),
        ("v1/old/V2/x.md", "2"),
        ("docs/intro.md", None),
        ("docs/v3.md", None),
        ("dev3/x.md", None),
        ("v3x/x.md", None),
    ],
)
def test_the_innermost_folder_that_names_a_version_counts(source: str, version: str | None) -> None:
    assert parse_version(source) == version
