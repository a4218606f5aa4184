"""`ragstack eval`, as a user starts it, with a real local Bedrock."""

import json
import signal
import sqlite3
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaluation import dataset, index
from evaluation.index import Indexing
from local_bedrock.store.database import Database, DataFolderError
from ragstack_common.core.errors import RagStackError
from ragstack_common.settings.base import read_settings
from ragstack_common.settings.relevance import calibration_of
from ragstack_common.settings.search import QuerySettings
from tests.evaluation.conftest import InProcess
from tests.evaluation.support import KINDS, QUERIES, RAGSTACK, environment, results, rows, write_data_set
from tests.ragstack_local.support import ragstack, running_stack, stack_at
from tests.support.children import END_SECONDS, child, start_child
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("measured data set")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all runs of this module keep their indexes in."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data_set(tmp_path_factory.mktemp("sets") / "birds")


@pytest.fixture(scope="module")
def evaluated(home: Path, data: Path) -> Path:
    """The results of one run over five setups."""
    changes = ["cosine_share=0", "rerank=lexical", "filter=right", "filter=wrong,filter_mode=strict"]
    options = [option for change in changes for option in ("--compare", change)]
    ended = ragstack("eval", "search", data, *options, "--depth", "100", "--output", home / "out", data=home)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return home / "out"


def test_every_setup_is_measured_and_what_is_found_is_right(evaluated: Path) -> None:
    setups = {setup["label"]: setup for setup in results(evaluated)["setups"]}

    assert list(setups) == [
        "HYBRID, hashed",
        "HYBRID, hashed, cosine_share=0",
        "HYBRID, hashed, rerank=lexical",
        "HYBRID, hashed, filter=right",
        "HYBRID, hashed, filter=wrong, filter_mode=strict",
    ]
    assert setups["HYBRID, hashed, cosine_share=0"]["by_query"]["nDCG@10"] == [1, 1, 1]
    assert setups["HYBRID, hashed"]["by_query"]["R@100"] == [1, 1, 1]
    figures = rows(evaluated)
    assert list(figures) == list(setups)
    assert figures["HYBRID, hashed"]["recall@100"] == 1
    assert "| HYBRID, hashed | " in (evaluated / "results.md").read_text()
    assert "rerank=lexical" in (evaluated / "results.svg").read_text()


def test_a_wrong_filter_alone_finds_nothing(evaluated: Path) -> None:
    setups = {setup["label"]: setup for setup in results(evaluated)["setups"]}
    first = {query: found[0] for query, found in setups["HYBRID, hashed, filter=right"]["rankings"].items()}

    assert setups["HYBRID, hashed, filter=wrong, filter_mode=strict"]["by_query"]["R@100"] == [0, 0, 0]
    assert {query: KINDS[name] for query, name in first.items()} == {
        query["_id"]: query["metadata"]["filter"]["kind"] for query in QUERIES if "metadata" in query
    }


def test_a_calibration_is_measured_written_and_used(tmp_path: Path, home: Path, data: Path) -> None:
    other = write_data_set(tmp_path / "others")
    file = tmp_path / "settings.json"
    output = tmp_path / "out"
    command = ["eval", "relevance", str(data), "--also", str(other), "--calibrate", str(file), "--output", str(output)]

    ended = ragstack(*command, data=home)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Relevance, hashed, HYBRID: 6 questions" in ended.stdout
    assert "Share of the passages" not in ended.stdout, "it has a line for each point of a picture"
    assert "Share of the passages" in (output / "results.md").read_text()
    written = json.dumps(read_settings(file)["relevance_calibration"])
    settings = QuerySettings.from_env({"KNOWLEDGE_BASE_ID": "KB", "RELEVANCE_CALIBRATION": written})
    assert settings.relevance_calibration is not None
    made = calibration_of(settings.relevance_calibration, "hashed", "HYBRID")
    assert made is not None
    assert made.provenance is not None
    assert made.provenance.sets == ("birds", "others")
    assert results(tmp_path / "out")["calibration"]["weights"] == made.weights
    fitted = {name for name in rows(tmp_path / "out") if name.startswith("birds")}
    assert fitted == {"birds, own questions", "birds, other sets", "birds, in use"}
    assert (tmp_path / "out" / "results.svg").exists()


@pytest.mark.slow
def test_the_table_of_filters_compares_every_way_to_filter(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    data = write_data_set(tmp_path / "birds")
    further = [
        {"_id": "q2", "right": {"kind": "boat"}, "near_kind": [{"kind": "bird"}]},
        {"_id": "q3", "near_kind": []},
    ]
    (data / "filters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in further))

    in_process("eval", "filters", data, "--cluster", "kind", "--output", tmp_path / "out", data=home)

    ways = rows(tmp_path / "out")
    assert list(ways) == ["no filter", "inferred, no filter", "filter alone", "boost 1.25", "trust"]
    assert list(ways["trust"]) == [
        "way",
        *("right (3)", "Δ right", "kept"),
        *("near kind (1)", "Δ near kind"),
        *("wrong (3)", "Δ wrong"),
    ]
    assert ways["filter alone"]["right (3)"] == 1
    assert ways["filter alone"]["wrong (3)"] == 0
    assert ways["filter alone"]["Δ wrong"]["mean"] == -ways["no filter"]["wrong (3)"]
    assert ways["trust"]["near kind (1)"] > 0
    assert "near kind (1)" in (tmp_path / "out" / "results.svg").read_text()


def test_a_second_run_finds_the_index_of_the_first(
    evaluated: Path, home: Path, data: Path, in_process: InProcess
) -> None:
    before = _chunk_ids_of_all(home)

    in_process("eval", "search", data, "--output", home / "again", data=home)

    assert _chunk_ids_of_all(home) == before
    assert results(home / "again")["setups"][0]["by_query"] == {
        name: values for name, values in results(evaluated)["setups"][0]["by_query"].items() if name != "R@100"
    }


def test_other_documents_or_another_way_to_index_have_another_folder(
    home: Path, tmp_path: Path, in_process: InProcess
) -> None:
    changed = write_data_set(tmp_path / "birds")
    with (changed / "corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "gull", "text": "The gull takes what it can get."}\n')
    folder = home / "evaluation" / "indexes"
    before = set(folder.glob("*"))

    in_process("eval", "search", changed, "--compare", "headers=no", "--output", tmp_path / "out", data=home)

    assert len(set(folder.glob("*")) - before) == 2


def test_words_are_searched_in_an_index_of_s3_vectors(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    data = write_data_set(tmp_path / "birds")

    options = ("--compare", "store=s3_vectors", "--compare", "store=s3_vectors,search=SEMANTIC")
    in_process("eval", "search", data, "--setup", "feedback=no", *options, "--output", tmp_path / "out", data=home)

    setups = {setup["label"].replace(", feedback=no", ""): setup for setup in results(tmp_path / "out")["setups"]}
    assert list(setups) == [
        "HYBRID, hashed",
        "HYBRID, hashed, store=s3_vectors",
        "SEMANTIC, hashed, store=s3_vectors",
    ]
    assert setups["HYBRID, hashed, store=s3_vectors"]["rankings"] == setups["HYBRID, hashed"]["rankings"]


@pytest.mark.slow
def test_an_interrupted_run_continues_later(tmp_path: Path, in_process: InProcess) -> None:
    many = write_data_set(tmp_path / "many")
    with (many / "corpus.jsonl").open("a") as corpus:
        for number in range(150):
            text = " ".join(f"word{number}x{place}" for place in range(300))
            corpus.write(json.dumps({"_id": f"d{number}", "text": text}) + "\n")
    for attempt in range(5):  # on a busy machine a run may have ended before it is interrupted
        home = tmp_path / f"home-{attempt}"
        process = start_child([RAGSTACK, "eval", "search", many], env=environment(home), stdout=subprocess.DEVNULL)
        (file,) = eventually(partial(_indexes, home))
        eventually(partial(_has_ten_documents, file.parent))

        process.send_signal(signal.SIGINT)

        if process.wait(END_SECONDS) != 0:
            break
    assert process.returncode != 0
    assert _count(file.parent, "document") > 0
    in_process("eval", "search", many, "--output", tmp_path / "out", data=home)
    assert _count(file.parent, "document WHERE status = 'INDEXED'") == 155


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_process(data: Path, tmp_path: Path) -> None:
    with child([RAGSTACK, "eval", "search", data], env=environment(tmp_path), stdout=subprocess.DEVNULL):
        (file,) = eventually(partial(_indexes, tmp_path))

    eventually(partial(_is_free, file.parent))


def test_any_backend_is_measured_by_its_configuration(
    home: Path, data: Path, tmp_path: Path, in_process: InProcess
) -> None:
    config = tmp_path / "federation.json"
    collection = {"type": "collection", "search_type": "SEMANTIC"}
    config.write_text(json.dumps({"type": "federated", "backends": [collection, {"type": "collection"}]}))

    in_process("eval", "search", data, "--setup", f"engine={config}", "--output", tmp_path / "out", data=home)

    assert [setup["label"] for setup in results(tmp_path / "out")["setups"]] == ["federation"]
    by_query = results(tmp_path / "out")["setups"][0]["by_query"]
    assert by_query["R@10"] == [1, 1, 1]


def test_the_running_stack_is_measured(home: Path, data: Path, tmp_path: Path, in_process: InProcess) -> None:
    with index.serving(dataset.read(data), Indexing("hashed"), tmp_path) as served:
        stack = stack_at(bedrock_endpoint=served.url, knowledge_base_id=served.knowledge_base_id)
        stack = replace(stack, data_source_id=served.data_source_id)
        with running_stack(home, stack):
            in_process("eval", "search", data, "--setup", "engine=stack", "--output", tmp_path / "out", data=home)
            questions = tmp_path / "questions.csv"
            rows = ("Which heron waits for fish?,heron", "heron for sailors,heron boat", "What hunts voles?,kestrel")
            questions.write_text("\n".join(("question,file", *rows)))
            in_process("eval", "search", questions, "--setup", "engine=stack", "--output", tmp_path / "own", data=home)
            in_process(
                "eval", "relevance", questions, "--setup", "engine=stack", "--output", tmp_path / "relevance", data=home
            )
            questions.write_text("question,file\nWhich heron waits for fish?,hern.md\n")
            misspelt = ragstack("eval", "search", questions, "--setup", "engine=stack", data=home)

    for folder in ("out", "own"):
        (setup,) = results(tmp_path / folder)["setups"]
        assert setup["by_query"]["nDCG@10"] == [1, 1, 1]
    assert (tmp_path / "relevance" / "results.json").exists()
    assert misspelt.returncode == 3
    assert "The knowledge base has no document hern.md: correct the names in questions" in misspelt.stderr


def test_a_text_that_cannot_be_read_does_not_end_a_run(home: Path, tmp_path: Path) -> None:
    data = write_data_set(tmp_path / "unreadable")
    with (data / "corpus.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"_id": "binary", "text": "\x00\x01\x02" * 50}) + "\n")

    ended = ragstack("eval", "search", data, "--output", tmp_path / "out", data=home)

    assert ended.returncode == 0
    assert "1 of 6 documents cannot be searched, and count as not found: binary: FAILED" in ended.stderr
    (setup,) = results(tmp_path / "out")["setups"]
    assert setup["by_query"]["nDCG@10"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "--setup", "engine=nowhere.json"], "nowhere.json is not a backend configuration"),
        (["search", "--setup", "engine=stack"], "No local stack is running"),
        (["search", "--setup", "search=VECTOR"], "search: Input should be 'HYBRID' or 'SEMANTIC'"),
        (["search", "--split", "dev"], "dev.tsv cannot be read"),
        (["search", "--compare", "filter=near_year"], "No query of birds has a filter 'near_year'"),
        (["filters", "--setup", "filter=right"], "varies filter, filter_mode, merge and infer itself"),
        (["search", "--cluster", "size"], "No query of birds has the attribute size"),
        (["search", "--compare", "boost=-1"], "boost: Input should be greater than 0"),
        (["search", "--setup", "embedding=word2vec"], "There is no embedding 'word2vec'"),
    ],
)
def test_an_impossible_evaluation_is_rejected_with_its_option(
    home: Path, data: Path, arguments: list[str], message: str, in_process: InProcess
) -> None:
    with pytest.raises(RagStackError) as refused:
        in_process("eval", arguments[0], data, *arguments[1:], data=home)

    assert message in str(refused.value)


def _indexes(home: Path) -> list[Path]:
    return list((home / "evaluation" / "indexes").glob("*/bedrock.sqlite3"))


def _chunk_ids(folder: Path) -> list[tuple[Any, ...]]:
    return _rows(folder, "SELECT id, document_id FROM chunk ORDER BY id")


def _chunk_ids_of_all(home: Path) -> dict[Path, list[tuple[Any, ...]]]:
    return {folder: _chunk_ids(folder) for folder in (home / "evaluation" / "indexes").iterdir()}


def _count(folder: Path, of: str) -> int:
    ((count,),) = _rows(folder, f"SELECT count(*) FROM {of}")
    return int(count)


def _has_ten_documents(folder: Path) -> bool:
    return _count(folder, "document") >= 10


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{folder / 'bedrock.sqlite3'}?mode=ro", uri=True, timeout=10) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return [(0,)]  # the tables are being made


def _is_free(folder: Path) -> bool:
    try:
        Database(folder).close()
    except DataFolderError:
        return False
    return True
