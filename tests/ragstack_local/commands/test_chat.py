"""``ragstack chat``, against an API that streams answers."""

import json
import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ragstack_local.answer_events import QUESTION, TEXT, events, response
from tests.ragstack_local.support import FOREVER, RAGSTACK, Api, ragstack, running_stack, stack_at
from tests.support.children import END_SECONDS, child
from tests.support.waiting import eventually

CORPORA: dict[str, Any] = {
    "corpora": [{"name": name, "configured": False, "searchable": True} for name in ("people", "product")],
    "complete": True,
}


@pytest.fixture
def stack(tmp_path: Path, api: Api) -> Iterator[Path]:
    with running_stack(tmp_path, stack_at(api_url=api.url)):
        yield tmp_path


def asked(api: Api) -> list[dict[str, Any]]:
    return [request["body"] for request in api.requests if request["path"].endswith("/ask/stream")]


def test_each_question_brings_the_earlier_turns(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    done = ragstack(
        "chat", "--top-k", "3", data=stack, typed=f"{QUESTION}\n\nAnd in version 2?\n/new\nAgain?\n/quit\nx\n"
    )

    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": TEXT}]
    assert done.returncode == 0, done.stderr
    assert asked(api) == [
        {"question": QUESTION, "chat_history": [], "top_k": 3},
        {"question": "And in version 2?", "chat_history": turns, "top_k": 3},
        {"question": "Again?", "chat_history": [], "top_k": 3},
    ]
    assert f"> {QUESTION}" in done.stdout.splitlines()


def test_a_corpus_is_chosen_among_those_that_exist(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))
    api.lists["corpora"] = CORPORA

    lines = ["/corpus people", "One?", "/corpus legal", "Two?", "/corpus all", "Three?", "/corpus"]
    done = ragstack("chat", data=stack, typed="\n".join(lines))

    assert [body.get("corpus_filter") for body in asked(api)] == ["people", "people", "all"]
    assert "There is no corpus legal." in done.stdout
    assert "Corpus: people. Choose one of: people, product, all" in done.stdout
    assert "Corpus: all." in done.stdout


def test_all_passages_of_the_last_answer_can_be_shown(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))

    done = ragstack("chat", data=stack, typed=f"/sources\n{QUESTION}\n/sources\n/help\n/nonsense\n")

    assert "There are no sources yet." in done.stdout
    assert done.stdout.count("[1]  Reach API") == 2
    assert done.stdout.count("[2]  prices.md") == 1
    assert "/corpus NAME" in done.stdout
    assert "There is no command /nonsense: write /help for a list." in done.stdout


def test_json_is_one_line_for_each_question_also_for_one_that_fails(stack: Path, api: Api) -> None:
    api.will_stream(*events(response()))
    failing = f"event: error\ndata: {json.dumps({'error': {'code': 'Throttled', 'message': 'Later'}})}\n\n".encode()

    done = ragstack("chat", "--json", data=stack, typed=f"{QUESTION}\n/new\n{QUESTION}\n")
    api.will_stream(failing)
    failed = ragstack("chat", "--json", data=stack, typed="Why?\n")

    assert [json.loads(line) for line in done.stdout.splitlines()] == [response().model_dump(mode="json")] * 2
    assert done.returncode == 0
    assert json.loads(failed.stdout) == {"question": "Why?", "error": "Throttled: Later"}
    assert failed.returncode == 3


def test_ctrl_c_stops_an_answer_and_then_leaves(stack: Path, api: Api) -> None:
    api.will_stream(*list(events(response()))[:3], FOREVER)
    terminal, own = pty.openpty()
    command: list[str | Path] = [RAGSTACK, "chat", "--api-url", api.url]
    shown = b""

    def reads(words: str) -> None:
        """Read until these words come after those that were read before."""
        nonlocal shown
        while words.encode() not in shown:
            assert select.select([terminal], [], [], END_SECONDS)[0], f"{words!r} did not come after {shown!r}"
            try:
                shown += os.read(terminal, 1000)
            except OSError:
                raise AssertionError(f"ended after {shown!r}") from None
        shown = shown.partition(words.encode())[2]

    with child(command, stdin=own, stdout=own, stderr=own, start_new_session=True) as chatting:
        os.close(own)  # so that reading ends with the process
        reads("> ")
        os.write(terminal, f"{QUESTION}\n".encode())
        reads("“One")
        eventually(lambda: is_waiting(chatting.pid))  # Python ignores interrupts in callbacks of weak references
        chatting.send_signal(signal.SIGINT)
        reads("Stopped. This question is not part of the conversation.")
        eventually(api.closed.is_set)
        reads("> ")
        chatting.send_signal(signal.SIGINT)
        eventually(lambda: not has_pending_signal(chatting.pid))  # an empty line that comes before it would be entered
        os.write(terminal, b"\n")  # wakes readline, which misses a signal that comes just after its prompt

        assert chatting.wait(END_SECONDS) == 130
    os.close(terminal)


def is_waiting(process_id: int) -> bool:
    """Whether a process has used no processor time for a tenth of a second, as Linux shows it."""
    status = Path(f"/proc/{process_id}/stat")

    def used() -> list[str]:
        return status.read_text().rpartition(")")[2].split()[11:13] if status.exists() else []

    before = used()
    time.sleep(0.1)
    return used() == before


def has_pending_signal(process_id: int) -> bool:
    """Whether a signal waits for a thread of the process to take it, as Linux shows it."""
    status = Path(f"/proc/{process_id}/status")
    return status.exists() and re.search(r"^ShdPnd:\t0+$", status.read_text(), re.MULTILINE) is None
