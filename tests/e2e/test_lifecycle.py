"""Starts and ends of a stack on a folder of its own, which a start that follows an earlier one finds synthesized."""

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstack_local.demo import ANSWERS, CONVERTED, SCANNED, SEARCHES
from ragstack_local.stack.deployment import installed_recognition
from tests.e2e.support import START_SECONDS, STOP_SECONDS, LocalStack
from tests.e2e.test_access_stack import People
from tests.support.soak import SOAK
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("lifecycle stack"),
    pytest.mark.skipif(not SOAK, reason="starts whole stacks for two minutes: run `make faults`"),
]
needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")


@pytest.fixture(scope="module")
def folder_of_its_own(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack(tmp_path_factory.mktemp("lifecycle"), auth="none,oidc")
    yield stack
    stack.kill_all()


@pytest.fixture
def stack(folder_of_its_own: LocalStack) -> LocalStack:
    """A stack that is up, whatever the test before has left."""
    if not folder_of_its_own.is_up:
        folder_of_its_own.start()
    return folder_of_its_own


def bedrock_process(stack: LocalStack) -> int:
    lines = {number: Path(f"/proc/{number}/cmdline").read_bytes() for number in stack.processes()}
    return next(number for number, line in lines.items() if b"local_bedrock" in line)


@needs_proc
def test_a_dead_part_ends_the_stack_and_loses_no_document(stack: LocalStack) -> None:
    """The stack names the part, and the next start has all documents."""
    kept = stack.put("dying/dodo.md", "The dodo of Mauritius could not fly.")
    stack.settled(kept)

    os.kill(bedrock_process(stack), signal.SIGKILL)
    assert stack.process is not None
    code = stack.process.wait(STOP_SECONDS)
    left = stack.processes()
    said = stack.log.read_text()
    stack.start()

    assert code == 3
    assert left == set()
    assert "Error: The local Bedrock ended with code -9" in said
    assert stack.found("dodo of Mauritius", "could not fly")["source"] == kept


@needs_proc
def test_down_ends_every_process_and_the_next_start_has_all_documents(stack: LocalStack) -> None:
    kept = stack.put("kept/ibis.md", "The ibis probes the mud of the estuary.")
    deleted = stack.put("kept/moa.md", "The moa of the south island is extinct.")
    stack.settled(kept, deleted)
    stack.delete("kept/moa.md")
    eventually(lambda: stack.statuses(deleted)[deleted] == "NOT_FOUND")
    groups = {os.getpgid(number) for number in stack.processes()}
    before = stack.records(kept, deleted)

    done = stack.run("down")
    assert stack.process is not None
    code = stack.process.wait(STOP_SECONDS)
    left = stack.processes()
    after = stack.run("status")
    stack.start()
    registered = stack.records(kept, deleted)
    result = stack.found("ibis estuary", "probes the mud")
    again = stack.put("kept/jabiru.md", "The jabiru came after the restart.")

    assert done.returncode == 0, done.stderr
    assert code == 0
    assert left == set()
    assert all(not group_exists(group) for group in groups)
    assert (after.returncode, after.stderr.count("\n")) == (3, 1)
    assert "No local stack is running" in after.stderr
    assert registered == before
    assert result["source"] == kept
    assert stack.settled(again) == {again: "INDEXED"}
    assert deleted not in [found["source"] for found in stack.search("The moa of the south island", top_k=50)]


@needs_proc
def test_a_killed_stack_loses_and_revives_no_document(stack: LocalStack) -> None:
    odd = stack.put("killed/Zürich + more/a b.md", "The nightjar sleeps on the Zürich gravel.")
    deleted = stack.put("killed/auk.md", "The great auk of Eldey is no more.")
    late = stack.put("killed/late.md", "The godwit stays for a while.")
    stack.settled(odd, deleted, late)
    before = stack.records(odd)[odd].history
    stack.delete("killed/auk.md")
    eventually(lambda: stack.statuses(deleted)[deleted] == "NOT_FOUND")

    os.kill(bedrock_process(stack), signal.SIGSTOP)
    status, answer = stack.request("POST", "/api/retrieve", {"query": "nightjar"})
    refused = stack.run("query", "nightjar")
    unseen = stack.put("killed/unseen.md", "The avocet was uploaded while nobody could index it.")
    stack.delete("killed/late.md")
    stack.kill_every_process()
    assert stack.process is not None
    stack.process.wait(STOP_SECONDS)
    stack.start()
    results = [stack.found("nightjar gravel", "nightjar"), stack.found("avocet uploaded", "avocet")]

    assert (status, answer["error"]["code"]) == (504, "RetrievalTimeout")
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 2)
    assert refused.stderr.splitlines()[1].startswith("Error: RetrievalTimeout: ")
    assert [result["source"] for result in results] == [odd, unseen]
    assert "comparing its documents again" in stack.log.read_text()
    assert not {"Synthesizing", "Deploying"} & {*stack.log.read_text().split()}
    assert "knows no synonyms" not in stack.log.read_text(), "only the first start on a folder says so"
    settled = stack.settled(odd, unseen)
    eventually(lambda: stack.known(late)[late] == "NOT_FOUND")

    # What had not changed was not submitted again.
    assert settled == {odd: "INDEXED", unseen: "INDEXED"}
    assert stack.records(odd)[odd].history == before
    assert stack.known(odd, unseen, deleted) == {odd: "INDEXED", unseen: "INDEXED", deleted: "NOT_FOUND"}
    assert stack.statuses(late, deleted) == dict.fromkeys((late, deleted), "NOT_FOUND")


@needs_proc
def test_a_kill_takes_no_revocation_and_no_judgment_back(stack: LocalStack) -> None:
    key = "samples/documents/people/quokka.md"
    stack.settled(stack.put(key, "The quokka keeps the salary list."))
    people = People(stack)
    eventually(lambda: key in people.retrieved("alice", "quokka salary list"))
    judged = {"query_id": "quokka", "query": "quokka", "document": key, "grade": 3}

    people.got("alice", "PUT", "/api/judgments", judged)
    revoked = stack.run("access", "revoke", "people", "group:people")
    hidden = people.retrieved("alice", "quokka salary list")
    stack.kill_every_process()
    assert stack.process is not None
    stack.process.wait(STOP_SECONDS)
    stack.start()
    again = People(stack)
    found = again.retrieved("olga", "quokka salary list")
    kept = again.retrieved("alice", "quokka salary list")
    judgments = again.got("alice", "GET", "/api/judgments")["judgments"]
    stack.run("access", "revoke", "people", "group:people", "--reset")

    assert revoked.returncode == 0, revoked.stderr
    assert (key in found, key in hidden, key in kept) == (True, False, False)
    assert [(each["query_id"], each["grade"]) for each in judgments] == [("quokka", 3)]
    assert "Changes of access rules, judgments, conversations and budgets" in stack.log.read_text()


@needs_proc
def test_a_stack_whose_command_was_killed_ends_by_itself(stack: LocalStack) -> None:
    stack.search("emu")  # so that a function runs
    assert stack.process is not None
    children = stack.processes() - {stack.process.pid}

    stack.process.kill()
    stack.process.wait(STOP_SECONDS)
    eventually(lambda: not stack.processes(), STOP_SECONDS)
    unpacked = list((stack.folder / "data/unpacked-functions").iterdir())
    done = stack.run("down")
    again = stack.run("down")

    assert children
    assert unpacked
    assert not (stack.folder / "data/unpacked-functions").exists()
    assert (done.returncode, done.stderr) == (0, "")
    assert "a killed local stack" in done.stdout
    assert (again.returncode, "No local stack is running" in again.stderr) == (3, True)


def test_the_demonstration_succeeds_and_leaves_nothing_running(folder_of_its_own: LocalStack) -> None:
    demonstration = folder_of_its_own
    if demonstration.is_up:
        demonstration.end()

    has_recognition = installed_recognition() is not None
    asked = (*ANSWERS, *CONVERTED, *([SCANNED] if has_recognition else []))

    done = demonstration.run("demo", "--once", *demonstration.options, timeout=START_SECONDS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert all(shlex.join(question.arguments) in done.stdout for question in SEARCHES)
    assert done.stdout.count("ms through API Gateway") == len(SEARCHES)
    assert all(f"ragstack ask {shlex.join(question.arguments)}" in done.stdout for question in asked)
    assert done.stdout.count("The search found nothing that is relevant enough to answer this question.") == 2
    assert "user:bob,group:engineering does not see it: people allows none of" in done.stdout
    assert "maintenance-contract.docx, attached to coffee-machines.eml, became a document" in done.stdout
    assert ("19 INDEXED" if has_recognition else "1 FAILED, 18 INDEXED") in done.stdout
    assert ("page 1 (read from an image)" in done.stdout) is has_recognition
    assert ("To read scans, install text recognition" in done.stdout) is not has_recognition
    assert demonstration.processes() == set()


@pytest.fixture
def early(installed: None, tmp_path: Path) -> LocalStack:
    """A stack that comes no further than the start of the synthesis, however long it takes to look at it."""
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\nexec sleep 600\n")
    node.chmod(0o755)
    # Source: jsii, JSII_NODE: what is started as node.
    return LocalStack(tmp_path, variables={"JSII_NODE": str(node)})


@needs_proc
def test_a_start_ends_what_is_left_and_down_ends_a_start(early: LocalStack) -> None:
    early.launch()
    try:
        # MiniStack, the local Bedrock, and two of the cdk's commands.
        eventually(lambda: len(early.processes()) > 4)
        assert early.process is not None
        early.process.kill()
        early.process.wait(STOP_SECONDS)
        # MiniStack and the local Bedrock notice it; the cdk's commands know nothing of the one that started them.
        left = early.processes()

        early.launch()
        eventually(lambda: not left & early.processes(), STOP_SECONDS)
        eventually(lambda: len(early.processes()) > 4)
        status = early.run("status")
        done = early.run("down")

        assert left
        assert early.process.wait(STOP_SECONDS) == 130
        assert done.returncode == 0, done.stderr
        assert early.processes() == set()
        assert list(early.folder.glob("data/logs/*.pid")) == []
        assert not (early.folder / "data/unpacked-functions").exists()
        assert "Traceback" not in early.log.read_text()
        assert (status.returncode, status.stderr.count("\n")) == (3, 1)
        assert "still starting" in status.stderr
    finally:
        early.kill_all()


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
