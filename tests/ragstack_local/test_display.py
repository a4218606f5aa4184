"""What people see."""

from pathlib import Path
from typing import Any

import pytest

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.roots import Roots
from ragstack_local.errors import ApiError
from ragstack_local.show import display, explanation, results
from tests.ragstack_local.retrieve_answers import RANKING, answer, part, result
from tests.ragstack_local.support import stack_at


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_results_show_rank_source_attributes_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    other = result(source="s3://documents/other.md", metadata={})

    results.print_results(answer(result(score=0.98765), other), "leave")

    lines = [" ".join(line.split()) for line in shown(capsys).splitlines()]
    assert lines == [
        "1 s3://documents/leave.md corpus=people topic=leave",
        "Thirty days of leave.",
        "2 s3://documents/other.md",
        "Thirty days of leave.",
        "2 results in 20 ms (unfiltered ok 12 ms)",
    ]


def test_a_result_names_its_file_on_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "leave.md").touch()

    results.print_results(answer(result()), "leave", roots=Roots(keys={tmp_path / "leave.md": "leave.md"}))

    assert shown(capsys).splitlines()[1].strip() == str(tmp_path / "leave.md")


def test_no_number_makes_a_right_result_look_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Right answers of the default embedding have relevances of 6 to 17 %."""
    found = [result(relevance=share) for share in (0.072, 0.0004)]

    results.print_results(answer(*found, answerable=False, best_relevance=0.076), "leave")
    results.print_results(answer(answerable=True, best_relevance=0.6), "leave")

    lines = [" ".join(line.split()) for line in shown(capsys).splitlines() if "ms" not in line and "days" not in line]
    assert lines == [
        "Probably none of the results is relevant.",
        "1 s3://documents/leave.md corpus=people topic=leave",
        "2 s3://documents/leave.md corpus=people topic=leave",
        "Nothing reaches the minimum (best relevance: 0.60).",
    ]


def test_further_passages_are_indented_below_their_result(capsys: pytest.CaptureFixture[str]) -> None:
    passages = [{"content": text, "page": n} for n, text in enumerate(("Thirty days.", "Leave ends.", "It is paid."))]

    results.print_results(answer(result(passages=passages)), "leave", 2)

    lines = [line.rstrip() for line in shown(capsys).splitlines()]
    assert lines[1:3] == [f"{'':5}Thirty days of leave.", f"{'':9}page 1: Leave ends."]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("passage", "place"),
    [
        ({"page": 4, "section": "Leave > Parental leave"}, "page 4 > Leave > Parental leave"),
        ({"page": 4, "last_page": 5}, "pages 4 to 5"),
        ({"page": 2, "is_slide": True, "section": "Plans"}, "slide 2 > Plans"),
        ({"page": 1, "is_recognized": True, "section": "Rent"}, "page 1 (read from an image) > Rent"),
        ({"page": None, "sheet": "Budget", "section": None}, "Budget"),
        ({}, ""),
    ],
)
def test_a_result_says_where_it_is_in_its_document(
    passage: dict[str, Any], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results.print_results(answer(result(**passage)), "leave")

    assert results.describe_place(passage, passage.get("section")) == place
    assert place in shown(capsys)


def test_an_incomplete_answer_says_what_is_missing_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    late = part(slice="filtered", status="timeout", milliseconds=5000.0, hits=0, error="nothing [in] 5 s")

    results.print_results(answer(result(), complete=False, slices=[late]), "leave")

    text = shown(capsys)
    assert "filtered timeout 5000 ms" in text
    assert "Incomplete: a slice failed or timed out, and its results are missing." in text
    assert "filtered: nothing [in] 5 s" in text


@pytest.mark.parametrize("width", [12, 40])
def test_indented_text_is_complete_at_every_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setattr(display.console, "_width", width)

    display.print_indented(4, ("place: ", "italic"), "one \x1b[31m\x1b[0m\x07 two three four five six")

    lines = shown(capsys).splitlines()
    assert all(line.startswith("    ") and line == line.rstrip() for line in lines)
    assert "".join("".join(lines).split()) == r"place:one\x1b[31m\x1b[0m\x07twothreefourfivesix"
    assert all(len(line) <= width for line in lines)


def test_only_documents_that_cannot_be_found_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    display.print_unsearchable(
        {
            "s3://documents/good.md": DocumentStatus("INDEXED"),
            "s3://documents/bad.pdf": DocumentStatus("FAILED", "The file is empty."),
            "s3://documents/odd.md": DocumentStatus("FAILED"),
            "s3://documents/new.md": DocumentStatus("INDEXING"),
        }
    )

    assert shown(capsys).splitlines() == [
        "FAILED s3://documents/bad.pdf: The file is empty.",
        "FAILED s3://documents/odd.md: no reason given",
        "INDEXING s3://documents/new.md: in progress",
    ]


def test_urls_are_shown_whole_at_any_width(capsys: pytest.CaptureFixture[str]) -> None:
    long = "http://127.0.0.1:4566/_aws/execute-api/" + "x" * 200

    display.print_urls(stack_at(api_url=long))
    display.print_urls(stack_at(aws_endpoint=None, bedrock_endpoint=None))

    lines = shown(capsys).splitlines()
    assert f"API              {long}" in lines
    assert sum(line.startswith("AWS endpoint") for line in lines) == 1


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, ""),
        (
            {"embedding": "onnx:minilm-int8@0", "dimension": 384, "reembedding": {"done": 5, "total": 1200}},
            "onnx:minilm-int8@0, 384 dimensions; 5 of 1,200 stored chunks embedded, searches use the earlier one",
        ),
        (
            {"embedding": "hashed", "dimension": 1024, "reembedding": None},
            "hashed, 1024 dimensions; a model knows synonyms: `ragstack model add minilm`, then start again",
        ),
    ],
    ids=["on AWS", "embedding again", "hashed"],
)
def test_the_embedding_is_described(found: Any, line: str) -> None:
    assert display.embedding_line(found) == line


def test_a_step_that_fails_is_not_shown_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ApiError), display.step("Doing it"):
        raise ApiError("no")

    assert "✓" not in shown(capsys)


def test_a_balanced_answer_shows_corpora_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    counts = [{"name": "people", "candidates": 200, "results": 7}, {"name": "[product]", "candidates": 3, "results": 1}]

    results.print_results(
        answer(result(), corpora=counts, notes=[{"kind": "reranker", "text": "The reranker [x] failed"}]), "leave"
    )

    text = shown(capsys)
    assert "Corpora, results of candidates: people 7 of 200, [product] 1 of 3" in text
    assert "The reranker [x] failed" in text


def explained(**ranking: Any) -> dict[str, Any]:
    return result(ranking={**RANKING, **ranking})


def test_an_explanation_has_a_sentence_and_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display.console, "width", 80)
    trusted = explained(
        score=0.902,
        found_by=["filtered", "unfiltered"],
        signals={"vector": 0.5, "bm25": 12.3},
        contributions={"filtered": 0.882, "unfiltered": 0.02},
        reason="Rank 2 with the filter, 14 without; trust 0.98",
    )

    explanation.print_explanation([trusted, explained()])

    lines = [" ".join(line.split()) for line in shown(capsys).splitlines()]
    assert lines[2:] == [
        "measured adds up to the score",
        "1 leave.md filtered, unfiltered 0.902",
        "Rank 2 with the filter, 14 without; trust 0.98.",
        "vector 0.50 █████████ filtered 0.88 ███████████████▉",
        "bm25 12.30 unfiltered 0.02 ▍",
        "engine 0.50 █████████",
        "2 leave.md unfiltered 0.500",
        "Ranked by its score.",
        "engine 0.50 █████████",
    ]


@pytest.mark.parametrize("width", [24, 40, 80, 120, 200])
def test_an_explanation_fits_every_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(display.console, "width", width)
    parts = {"phrase": 0.1, "a backend with a very long name": 0.2, "vector": 0.3}

    explanation.print_explanation([explained(contributions=parts, signals=parts, reranked_from=2)])

    assert max(map(len, shown(capsys).splitlines())) <= width


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0, "      "),
        (0.001, "▏     "),
        (0.25, "█▌    "),
        (1.7, "██████"),
    ],
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert explanation.bar(share, 6) == drawn


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_table_shows_every_word_at_every_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(display.console, "width", width)
    headings = ["setup", "nDCG@10", "recall@100", "different corpus@10", "Δ", "95 %", "verdict", "p95 ms"]
    name = "HYBRID, hashed, no headers, filtered_score_boost"
    row = [name, "0.612", "0.901", "3.21", "-0.123*", "-0.150 to -0.100", "no difference", "123"]

    display.print_table("scifact", headings, [row])

    text = shown(capsys)
    assert max(map(len, text.splitlines())) <= width
    assert {word for cell in [*headings[1:], *row] for word in cell.split()} <= set(text.replace(":", "").split())


def test_an_interruption_counts_what_continues_and_what_is_missing() -> None:
    statuses = {"a": DocumentStatus("PENDING"), "b": DocumentStatus("INDEXED")}

    assert display.interrupted(statuses, 3) == (
        "Interrupted. 1 document continuing in the background: see `ragstack status`."
        " 3 documents not confirmed: run the same command again."
    )
    assert display.interrupted({}) == "Interrupted."
