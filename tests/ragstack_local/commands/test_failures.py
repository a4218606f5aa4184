"""The commands that list, replay and discard what failed show what the API answers."""

import json
import shlex
from dataclasses import replace
from threading import Timer

import pytest

from ragstack_common.ingestion.messages import check
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.services import dead_letters
from ragstack_local.errors import ApiError, StackError
from tests.ragstack_common.services.conftest import Aws
from tests.ragstack_common.services.test_failures import bury, remaining, sent, uri
from tests.ragstack_local.commands.conftest import Run
from tests.support.registry_table import TABLE

LINES = '{"hello": "[bold]x",\n  "world": 1}'


def index_soon(aws: Aws, record: DocumentRecord) -> Timer:
    """Index a document in a moment, as the functions do after they read its message."""
    indexed = replace(record, status=Status.INDEXED, reason=None, updated_at=record.updated_at + 100)
    registry = DocumentRegistry(TABLE, aws.dynamodb)
    timer = Timer(0.5, lambda: registry.write([RecordChange(registry.read([record.uri])[record.uri], indexed)]))
    timer.start()
    return timer


def test_each_failure_is_listed_once_with_the_command_to_run(aws: Aws, run: Run) -> None:
    aws.record("bad.md", Status.FAILED, reason="Throttled (after 5 attempts)", attempts=1)
    bury(aws, check([uri("bad.md")]), LINES)

    shown = run("failures").stdout
    as_json = json.loads(run("failures", "--json").stdout)

    assert shown.count(f"FAILED {uri('bad.md')}\n") == 1
    assert "1 dead letter, 1 attempt" in shown
    assert f"The cause may be temporary: replay. Run: ragstack replay {uri('bad.md')}\n" in shown
    assert "UNREADABLE message" in shown
    assert '{"hello": "[bold]x", "world": 1}' in shown
    (document,) = as_json["documents"]
    assert (document["uri"], document["status"], len(document["message_ids"])) == (uri("bad.md"), "FAILED", 1)
    assert [message["body"] for message in as_json["unreadable"]] == [LINES]


def test_documents_that_failed_for_one_reason_share_its_explanation(aws: Aws, run: Run) -> None:
    for name in ("a.pdf", "b.pdf"):
        aws.record(name, Status.FAILED, reason="The file is encrypted")
    aws.record("c.md", Status.FAILED, reason="The file is empty")

    shown = run("failures").stdout

    assert shown.count("The file is encrypted") == shown.count("The file is empty") == 1
    assert "2 documents failed for the same reason:" in shown
    assert shown.index(uri("b.pdf")) < shown.index("The file is encrypted") < shown.index(uri("c.md"))


def test_failed_documents_of_every_page_are_listed(aws: Aws, run: Run) -> None:
    for number in range(101):
        aws.record(f"{number:03}.md", Status.FAILED, reason="x")

    assert len(json.loads(run("failures", "--json").stdout)["documents"]) == 101


def test_without_failures_the_commands_say_so(run: Run) -> None:
    assert run("failures").stdout == "Nothing failed, and there is no dead letter.\n"
    assert "Sent again: 0 documents; deleted: 0 dead letters" in run("replay").stdout
    assert run("discard", "--unreadable").stdout == "There is no unreadable dead letter.\n"


def test_a_replay_is_followed_until_the_documents_are_searchable(aws: Aws, run: Run) -> None:
    record = aws.record("fixed.md", Status.FAILED, aws.put("fixed.md"), reason="Throttled (after 5 attempts)")
    bury(aws, check([uri("fixed.md")]), "not JSON")

    indexing = index_soon(aws, record)
    done = run("replay")
    indexing.join()

    assert done.exit_code == 0, done.output
    assert "Sent again: 1 document; deleted: 1 dead letter\n" in done.stdout
    assert "Kept because they are unreadable: 1 dead letter" in done.stdout
    assert "1 INDEXED" in done.stdout
    assert sent(aws) == [uri("fixed.md")]


def test_a_failure_from_before_the_replay_is_not_its_outcome(aws: Aws, run: Run) -> None:
    aws.record("bad.md", Status.FAILED, aws.put("bad.md"), reason="x")

    done = run("replay", uri("bad.md"), "--timeout", "1")

    assert isinstance(done.exception, StackError)
    assert "Not every document reached a final status within 1 s" in str(done.exception)
    assert f"WAITING {uri('bad.md')}: Its message has not been read yet" in done.stdout


def test_a_replay_as_json_has_every_document(aws: Aws, run: Run) -> None:
    aws.record("bad.md", Status.FAILED, reason="x")
    bury(aws, check([uri("bad.md")]), "not JSON")

    done = run("replay", "--no-wait", "--json")

    answer = json.loads(done.stdout)
    assert done.exit_code == 0, done.output
    assert answer["documents"] == [
        {"uri": uri("bad.md"), "status": "WAITING", "reason": "Its message has not been read yet", "sent": True}
    ]
    assert answer["letters"] == {"deleted": 1, "unreadable": 1, "shared": 0}


def test_the_command_to_run_survives_a_quote_in_a_key(aws: Aws, run: Run) -> None:
    aws.record("it's.md", Status.FAILED, reason="Throttled (after 5 attempts)")

    (command,) = [line.partition("Run: ")[2] for line in run("failures").stdout.splitlines() if "Run: " in line]

    assert shlex.split(command) == ["ragstack", "replay", uri("it's.md")]


def test_a_long_replay_is_sent_in_several_requests(aws: Aws, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_CHARACTERS", 100)
    bury(aws, *(check([uri(f"{number:02}.md")]) for number in range(25)))

    done = run("replay", "--no-wait", "--json")

    answer = json.loads(done.stdout)
    assert len(answer["documents"]) == answer["letters"]["deleted"] == 25
    assert remaining(aws) == []


def test_an_unknown_document_is_an_error_and_nothing_is_sent(aws: Aws, run: Run) -> None:
    done = run("replay", uri("nothing.md"))

    assert isinstance(done.exception, ApiError)
    assert "nothing.md; nothing was sent" in str(done.exception)
    assert sent(aws) == []


def test_discard_prints_the_whole_message_asks_and_deletes(aws: Aws, run: Run) -> None:
    (message_id,) = bury(aws, LINES, cause="a cause")

    refused = run("discard", "--unreadable", input="n\n")
    done = run("discard", "--unreadable", input="y\n")

    assert refused.exit_code == 1
    assert "Discarded" not in refused.output
    assert done.exit_code == 0, done.output
    assert LINES in done.stdout
    assert f"message {message_id}\n" in done.stdout
    assert "a cause" in done.stdout
    assert "Discard 1 dead letter for good?" in done.stderr
    assert done.stdout.index(LINES) < done.stdout.index("Discarded: 1 dead letter")
    assert remaining(aws) == []


def test_discard_as_json_prints_only_the_messages(aws: Aws, run: Run) -> None:
    message_id, other = bury(aws, check([uri("strange.md")]), LINES, cause="a cause")

    done = run("discard", message_id, "--unreadable", "--yes", "--json")

    found = {message["message_id"]: message for message in json.loads(done.stdout)["discarded"]}
    assert done.exit_code == 0, done.output
    assert (found[message_id]["body"], found[other]["body"]) == (check([uri("strange.md")]), LINES)
    assert [len(found[name]["notes"]) for name in (message_id, other)] == [1, 0]
    assert found[other]["cause"] == "a cause"
    assert "Discarded: 2 dead letters" in done.stderr


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_text_from_documents_and_messages_cannot_control_the_terminal(
    aws: Aws, run: Run, options: tuple[str, ...]
) -> None:
    aws.record("\x1b[2J\u202e.md", Status.FAILED, reason="\x1b[31mred\x07")
    bury(aws, "\x9b[31mno message\u202e", cause="\x9b2J\x7f")

    for command in (("failures",), ("discard", "--unreadable", "--yes")):
        done = run(*command, *options)

        assert done.exit_code == 0, done.output
        assert "[31mno" in done.stdout
        assert not set("\x07\x1b\x7f\x9b\u202e") & set(done.output)
