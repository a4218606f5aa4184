"""``ragstack ask``, against an API that streams answers."""

import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.answers.answer import Answerer, Sentence, Usage
from ragstack_common.answers.phrases import NO_ANSWER
from ragstack_common.search.models import Note, SliceReport
from ragstack_common.services.closest import ClosestDocument
from ragstack_local.show import answers, display
from tests.ragstack_local.answer_events import CONTENT, QUESTION, QUOTED, SOURCES, TEXT, events, response
from tests.ragstack_local.support import FOREVER, RAGSTACK, Api, ragstack, running_stack, stack_at
from tests.ragstack_local.test_foreign_text import ATTACK, controls_in
from tests.support.children import END_SECONDS, child
from tests.support.waiting import eventually


@pytest.fixture
def stack(tmp_path: Path, api: Api) -> Iterator[Path]:
    with running_stack(tmp_path, stack_at(api_url=api.url)):
        yield tmp_path


def test_an_answer_is_shown_with_citations_and_unsupported_parts(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    done = ragstack("ask", QUESTION, data=stack)

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].rstrip() == TEXT
    assert lines[2:4] == ["Not supported by a source:", "  - Ask for more."]
    assert lines[5:8] == ["[1]  Reach API", "     s3://b/limits.md  page 4 > Rate limits", f"     “{QUOTED}”"]
    assert "Quoted, without a model; 1 more passage read; 200 ms (search 100 ms)" in lines
    assert "prices.md" not in done.stdout


@pytest.mark.parametrize("is_buffered", [True, False])
def test_nothing_is_left_open_at_the_end(tmp_path: Path, api: Api, *, is_buffered: bool) -> None:
    stream = b"".join(events(response())) + b": heartbeat\n\n" * 3
    if is_buffered:
        api.will_answer(200, stream, **{"Content-Type": "application/json"})
    else:
        api.will_stream(stream)

    # A process of its own: what is left open is reported when the interpreter ends.
    done = subprocess.run(
        [RAGSTACK, "ask", QUESTION, "--json", "--api-url", api.url],
        cwd=tmp_path,
        env={**os.environ, "RAGSTACK_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_option_is_a_member_of_the_request(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    ragstack(
        *("ask", QUESTION, "--corpus", "product", "--doc-version", "2", "--filter", '{"year": 2026}'),
        *("--filter-mode", "strict", "--no-infer", "--top-k", "3", "--rerank", "none", "--language", "German"),
        data=stack,
    )
    ragstack("ask", QUESTION, "--rerank", "lexical", data=stack)

    assert [request["body"] for request in api.requests] == [
        {
            "question": QUESTION,
            "corpus_filter": "product",
            "version_filter": "2",
            "metadata_filter": {"year": 2026},
            "filter_mode": "strict",
            "infer_filter": False,
            "top_k": 3,
            "rerank": False,
            "language": "German",
        },
        {"question": QUESTION, "rerank": "lexical"},
    ]


def test_json_is_one_object_and_nothing_else(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    done = ragstack("ask", QUESTION, "--json", data=stack)

    assert json.loads(done.stdout) == response().model_dump(mode="json")
    assert done.stderr == ""


def _sentence(text: str, *, is_supported: bool) -> Sentence:
    citations = [1] if is_supported else []
    return Sentence(start=0, end=len(text), text=text, citations=citations, unsupported=not is_supported)


UNSUPPORTED = [_sentence(f"Sentence {number}.", is_supported=False) for number in range(7)]
NOT_ANSWERED = {"answer": "The documents do not say.", "answered": False, "sentences": [], "sources": []}


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        (NOT_ANSWERED, 1, "The documents do not say."),
        ({"cut_off": True}, 0, "The answer is cut off: it reached the maximum number of tokens (ANSWER_MAX_TOKENS)."),
        ({"sentences": UNSUPPORTED}, 0, "No source supports this answer."),
        ({"sentences": [_sentence("One.", is_supported=True), *UNSUPPORTED]}, 0, "and 2 more sentences"),
        ({"removed_citations": 2}, 0, "2 citations named no source and were removed."),
        ({"stop_reason": "guardrail_intervened"}, 0, "A guardrail intervened in the answer."),
        ({"notes": [Note("reranker", "The fallback model answered.")]}, 0, "The fallback model answered."),
        (
            {
                "complete": False,
                "slices": [SliceReport(corpus="people", status="timeout", milliseconds=5000, hits=0, error="too slow")],
            },
            0,
            "people: too slow",
        ),
        (
            {
                "answerer": Answerer(provider="bedrock", model="amazon.nova-lite-v1:0"),
                "usage": Usage(input_tokens=1200, output_tokens=40),
            },
            0,
            "amazon.nova-lite-v1:0; 1 more passage read; 1,200 + 40 tokens; 200 ms (search 100 ms)",
        ),
    ],
    ids=[
        "not answered",
        "cut off",
        "unsupported",
        "mostly unsupported",
        "removed",
        "guardrail",
        "note",
        "incomplete",
        "model",
    ],
)
def test_what_there_is_to_know_about_an_answer_is_said(
    stack: Path, api: Api, fields: dict[str, Any], code: int, remark: str
) -> None:
    api.will_stream(*events(response(**fields)))

    done = ragstack("ask", QUESTION, data=stack)

    assert done.returncode == code
    assert remark in [line.strip() for line in done.stdout.splitlines()]


def test_an_unquoted_source_names_the_section_of_the_words_shown(stack: Path, api: Api) -> None:
    content = "Ask for a key.\n\n## Limits\n\nOne key may make 600 requests.\n\n## Prices\n\nOne cent. " + "x " * 40
    source = SOURCES[0].model_copy(update={"content": content, "quoted": [], "page": None, "section": "Reach > Prices"})
    api.will_stream(*events(response(sources=[source])))

    done = ragstack("ask", "How many requests may one key make?", data=stack)

    (line,) = [each.strip() for each in done.stdout.splitlines() if "s3://" in each]
    assert line.endswith("limits.md  Reach > Limits")


def test_nothing_found_in_a_corpus_brings_the_command_that_lists_them(stack: Path, api: Api) -> None:
    api.will_stream(*events(response(**NOT_ANSWERED)))

    done = ragstack("ask", QUESTION, "--corpus", "poeple", data=stack)

    assert "`ragstack corpora` lists the values of --corpus." in done.stdout
    assert "--doc-version" not in done.stdout


def test_without_an_answer_the_closest_documents_are_shown(stack: Path, api: Api) -> None:
    closest = ClosestDocument(
        source="s3://b/limits.md",
        title="Limits",
        version="2026",
        page=4,
        section="Rate limits",
        excerpt="Rate limits: One API key may make 600 requests a minute.",
        content="| Key | Requests |",
        content_type="TEXT",
        score=0.5,
        metadata={},
    )
    api.will_stream(*events(response(answer=NO_ANSWER, answered=False, sentences=[], sources=[], closest=[closest])))

    done = ragstack("ask", QUESTION, data=stack)

    lines = [line.strip() for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert lines[0] == NO_ANSWER
    assert lines[lines.index("The closest documents:") + 2 :][:3] == [
        "Limits  2026",
        "s3://b/limits.md  page 4 > Rate limits",
        "Rate limits: One API key may make 600 requests a minute.",
    ]


def test_how_to_add_a_model_is_explained_once(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    first, second = (ragstack("ask", QUESTION, data=stack).stdout for _ in range(2))

    assert "There is no model, so answers quote the documents." in first
    assert all(command in first for _, command in answers.MODELS)
    assert "There is no model" not in second


def test_a_failed_answer_ends_its_line_and_is_an_error(stack: Path, api: Api) -> None:
    error = {"error": {"code": "GenerationTimeout", "message": "No answer within 60 s"}}
    api.will_stream(*list(events(response()))[:3], f"event: error\ndata: {json.dumps(error)}\n\n".encode())

    done = ragstack("ask", QUESTION, data=stack)

    assert done.returncode == 3
    assert done.stdout == "“One API \n"
    assert done.stderr.splitlines() == [stack_at().described, "Error: GenerationTimeout: No answer within 60 s"]


def test_text_of_documents_and_models_cannot_drive_the_terminal(
    stack: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SOURCES[0].model_copy(
        update={"content": CONTENT + ATTACK, "context": ATTACK, "source": ATTACK, "section": ATTACK, "quoted": []}
    )
    answer = response(answer=ATTACK, sources=[source], notes=[Note("reranker", ATTACK)])
    api.will_stream(*(event.replace(rb"\udc9b", b"") for event in events(answer)))

    done = ragstack("ask", QUESTION, data=stack)

    assert r"\x1b[31mred" in done.stdout
    assert controls_in(done.stdout) == []


def test_words_are_wrapped_whole_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A key may make 600 requests [1].\n\n- first\n- 第二 overlong-word-of-thirty-characters end"
    shown = []
    for size in (1, 3, len(text)):
        console = display.Console()
        console.file, console._force_terminal, console._color_system, console._width = io.StringIO(), True, None, 20
        monkeypatch.setattr(answers, "console", console)
        typewriter = answers.Typewriter()
        for start in range(0, len(text), size):
            typewriter.write(text[start : start + size])
        typewriter.end()
        shown.append([line.rstrip() for line in console.file.getvalue().splitlines()])

    assert shown[0] == shown[1] == shown[2]
    assert shown[0] == [
        *("A key may make 600", "requests [1].", "", "- first", "- 第二"),
        *("overlong-word-of-thirty-characters", "end"),
    ]


def test_ctrl_c_stops_the_answer_and_the_connection(stack: Path, api: Api) -> None:
    api.will_stream(*list(events(response()))[:3], FOREVER)
    command: list[str | Path] = [RAGSTACK, "ask", QUESTION, "--api-url", api.url]
    shown = "“One API".encode()
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        assert asking.stdout.read(len(shown)) == shown

        asking.send_signal(signal.SIGINT)
        _, errors = asking.communicate(timeout=END_SECONDS)

        assert (asking.returncode, errors.splitlines()[1:]) == (130, [b"Stopped."])
        eventually(api.closed.is_set)
