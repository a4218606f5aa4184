"""Data sets in BEIR's form: read as they are, refused by file and line."""

import json
from pathlib import Path

import pytest

from evaluation import dataset
from evaluation.dataset import DataSetError
from evaluation.searching import filter_of
from tests.evaluation.support import QUERIES, write_data_set

_UNANSWERABLE = "\n".join(json.dumps({**query, "metadata": {"answerable": False}}) for query in QUERIES)


def test_documents_queries_and_judgments_are_read(birds: Path) -> None:
    data = dataset.read(birds)

    assert list(data.documents) == ["heron", "osprey", "kestrel", "heron boat", "ferry", "empty"]
    assert [(query.id, dict(query.attributes)) for query in data.queries] == [
        ("q1", {"kind": "bird"}),
        ("q2", {"kind": "boat"}),
        ("q3", {"kind": "bird"}),
    ]
    assert data.judgments == {
        "q1": {"heron": 1, "osprey": 0},
        "q2": {"heron boat": 1},
        "q3": {"kestrel": 1},
    }


def test_a_query_without_a_relevant_document_does_not_count(birds: Path) -> None:
    (birds / "qrels" / "test.tsv").write_text("q1\theron\t1\nq2\theron boat\t0\n")

    data = dataset.read(birds)

    assert [query.id for query in data.queries] == ["q1"]


def test_queries_for_the_same_value_are_a_cluster(tmp_path: Path) -> None:
    queries = [dict(query) for query in QUERIES]
    queries[1] = {"_id": "q2", "text": "heron for sailors"}
    folder = write_data_set(tmp_path / "birds", queries)

    assert dataset.read(folder, cluster="kind").clusters == [0, 1, 0]
    assert dataset.read(folder).clusters == [0, 1, 2]


def test_judgments_need_no_headings(birds: Path) -> None:
    (birds / "qrels" / "dev.tsv").write_text("q3\tkestrel\t2\n")

    assert dataset.read(birds, "dev").judgments == {"q3": {"kestrel": 2}}


def test_reference_answers_and_questions_without_an_answer_are_read(tmp_path: Path) -> None:
    queries = [dict(query) for query in QUERIES]
    queries[0]["metadata"] = {"answer": "The grey heron"}
    queries[1]["metadata"] = {"answer": ["A dinghy", "The dinghy"]}
    queries[3]["metadata"] = {"answerable": False}

    data = dataset.read(write_data_set(tmp_path / "birds", queries))

    assert [query.answers for query in data.queries] == [("The grey heron",), ("A dinghy", "The dinghy"), ()]
    assert [query.id for query in data.unanswerable] == ["unjudged"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": ', "corpus.jsonl, line 2: the line: Invalid JSON"),
        ("corpus.jsonl", '["a"]', "corpus.jsonl, line 1: the line: Input should be an object"),
        ("corpus.jsonl", '{"_id": 7, "text": "x"}', "corpus.jsonl, line 1: _id: Input should be a valid string"),
        ("corpus.jsonl", '{"_id": "a"}', "corpus.jsonl, line 1: text: Field required"),
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n\n{"_id": "a", "text": "y"}', "line 3: there is another 'a'"),
        ("corpus.jsonl", '{"_id": "a", "text": "x", "metadata": [1]}', "line 1: metadata: Input should be"),
        ("corpus.jsonl", "", "corpus.jsonl: the file is empty"),
        ("corpus.jsonl", "\xff", "corpus.jsonl: this is not UTF-8"),
        ("queries.jsonl", '{"_id": "q1", "text": "  "}', "queries.jsonl, line 1: text: String should match"),
        ("queries.jsonl", '{"_id": "q1", "text": "x", "metadata": {"filter": {"a": [1]}}}', "line 1: metadata.filter"),
        (
            "queries.jsonl",
            '{"_id": "q1", "text": "x", "metadata": {"answer": ["a", " "]}}',
            "line 1: metadata.answer.1: ",
        ),
        ("queries.jsonl", _UNANSWERABLE, "'q1' is not answerable, but has a relevant document in the split"),
        ("qrels/test.tsv", "q1 heron 1", "test.tsv, line 1: query, document and grade with tabs between"),
        ("qrels/test.tsv", "q1\theron\t1\nq9\theron\t1", "test.tsv, line 2: there is no query 'q9'"),
        ("qrels/test.tsv", "q1\tgull\t1", "test.tsv, line 1: there is no document 'gull'"),
        ("qrels/test.tsv", "q1\theron\thigh", "test.tsv, line 1: the grade 'high' is not a whole number"),
        ("qrels/test.tsv", "q1\theron\t0", "no query has a relevant document in the split test"),
    ],
)
def test_malformed_data_is_rejected_with_file_and_line(birds: Path, file: str, content: str, message: str) -> None:
    (birds / file).write_bytes(content.encode("latin-1"))

    with pytest.raises(DataSetError) as refused:
        dataset.read(birds)

    assert message in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataSetError, match=r"corpus\.jsonl cannot be read: No such file"):
        dataset.read(tmp_path)


def test_a_wrong_attribute_is_another_value_and_the_same_each_time(birds: Path) -> None:
    data = dataset.read(birds)

    drawn = [data.wrong_attributes(query, seed=1) for query in data.queries]

    assert drawn == [{"kind": "boat"}, {"kind": "bird"}, {"kind": "boat"}]
    assert drawn == [data.wrong_attributes(query, seed=1) for query in data.queries]


def test_without_another_value_no_filter_is_wrong(tmp_path: Path) -> None:
    queries = [{**QUERIES[0], "metadata": {"filter": {"colour": "grey"}}}]
    folder = write_data_set(tmp_path / "set", [*queries, *QUERIES[1:]])
    data = dataset.read(folder)

    with pytest.raises(DataSetError, match="have no other colour than 'grey'"):
        data.wrong_attributes(data.queries[0], seed=1)


def test_further_filters_of_a_query_are_read_by_kind(birds: Path) -> None:
    lines = [
        {"_id": "q1", "near": [{"kind": "boat"}, {"kind": "bird"}], "none": []},
        {"_id": "q2", "near": {"kind": "x"}},
    ]
    (birds / "filters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    data = dataset.read(birds)

    assert [filter_of(data, query, "near") for query in data.queries] == [
        {"kind": {"$eq": "boat"}},
        {"kind": {"$eq": "x"}},
        None,
    ]
    assert filter_of(data, data.queries[0], "none") is None


def test_a_filter_must_be_an_object_of_values(birds: Path) -> None:
    (birds / "filters.jsonl").write_text('{"_id": "q1", "near": "boat"}\n')

    with pytest.raises(DataSetError, match=r"filters\.jsonl, line 1: near"):
        dataset.read(birds)


def test_a_title_precedes_its_text_once(birds: Path) -> None:
    documents = dataset.read(birds).documents

    assert documents["heron"].markdown.startswith("# Grey heron\n\nThe grey heron")
    assert dataset.Document(id="a", title="Title", text="# Title\n\nText").markdown == "# Title\n\nText"
    assert dataset.Document(id="a", title="In two\nlines").markdown == "# In two lines\n\n"


@pytest.mark.parametrize("source", ["heron boat", "s3://bucket/in/heron%20boat.txt", "s3://bucket/heron%20boat.md"])
def test_a_source_is_a_document_by_its_id_or_its_file_name(birds: Path, source: str) -> None:
    assert dataset.read(birds).documents_of([source, source]) == ("heron boat",)


def test_an_unknown_source_is_an_error(birds: Path) -> None:
    with pytest.raises(dataset.DataSetError, match=r"'s3://bucket/other\.pdf' is not in the collection"):
        dataset.read(birds).documents_of(["s3://bucket/other.pdf"])


QUESTIONS_CSV = """question,file
"How long, exactly?",leave.md
"How long, exactly?",in/pay.pdf
Why?,a b.md
"""
QUESTIONS_JSONL = """{"question": "How long, exactly?", "file": "leave.md"}
{"question": "How long, exactly?", "file": "in/pay.pdf"}
{"question": "Why?", "file": "a b.md"}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("questions.csv", QUESTIONS_CSV),
        ("questions.csv", f"\ufeff{QUESTIONS_CSV}"),
        ("questions.jsonl", QUESTIONS_JSONL),
    ],
)
def test_questions_and_files_are_a_data_set(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    data = dataset.read(tmp_path / name)

    assert [query.text for query in data.queries] == ["How long, exactly?", "Why?"]
    assert list(data.judgments.values()) == [{"leave.md": 1, "in/pay.pdf": 1}, {"a b.md": 1}]
    sources = ["s3://b/x/leave.md", "s3://b/in/pay.pdf", "s3://b/other/pay.pdf", "s3://b/a b.md"]
    assert data.documents_of(sources) == ("leave.md", "in/pay.pdf", "s3://b/other/pay.pdf", "a b.md")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("q.csv", "Frage,Datei\nWhy?,a.md\n", "the first line must name the columns question and file"),
        ("q.csv", "question,file\nWhy?,\n", "line 2: file: String should have at least 1 character"),
        ("q.csv", "question,file\n", "there are no questions"),
        ("q.jsonl", "question,file\nWhy?,a.md\n", "line 1: the line: Invalid JSON.*Is it CSV"),
        ("q.jsonl", '{"question": "Why?"}\n', "line 1: file: Field required"),
    ],
)
def test_a_wrong_file_of_questions_is_an_error(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(dataset.DataSetError, match=words):
        dataset.read(tmp_path / name)
