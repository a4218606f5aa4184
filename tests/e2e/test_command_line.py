"""The command line against a running stack."""

import json
from pathlib import Path

import pytest

from tests.e2e.support import LocalStack
from tests.support.ports import free_ports
from tests.support.sidecars import record_sidecar
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]


def test_status_shows_where_everything_is_and_counts_documents(stack: LocalStack, handbook: Path) -> None:
    done = stack.run("status")

    assert done.returncode == 0, done.stderr
    for value in (stack.connection.api_url, stack.connection.bucket, stack.connection.knowledge_base_id):
        assert value in done.stdout
    assert "documents can be searched" in done.stdout
    assert eventually(lambda: "Messages in queues: 0 events" in stack.run("status").stdout)


def test_logs_show_what_functions_and_processes_wrote(stack: LocalStack, handbook: Path) -> None:
    everything, one, unknown = stack.run("logs"), stack.run("logs", "ingestion"), stack.run("logs", "nothing")

    assert everything.returncode == one.returncode == 0, everything.stderr
    assert "bedrock Local Bedrock on http" in everything.stdout
    assert "ingestion INFO submission" in one.stdout
    assert "bedrock" not in one.stdout
    assert unknown.returncode == 2
    assert "choose answers, authorizer, bedrock, converter, documents" in unknown.stderr


def test_ingest_reports_only_the_changed_file(stack: LocalStack, tmp_path: Path) -> None:
    document = tmp_path / "swift.md"
    document.write_text("The swift sleeps in the air.")
    first = stack.run("ingest", document)

    document.write_text("")
    second = stack.run("ingest", document)

    assert (first.returncode, second.returncode) == (0, 1), first.stderr + second.stderr
    assert "The file is empty" in second.stdout


def test_attributes_of_the_command_line_are_searched_by_and_listed(stack: LocalStack, tmp_path: Path) -> None:
    document = tmp_path / "shrew.md"
    document.write_text("The shrew eats every two hours.")

    done = stack.run("ingest", document, "--corpus", "mammals", "--version", "7", "--metadata", "legs=4")
    corpora = stack.run("corpora")
    (best, *_) = stack.search("When does the shrew eat?", metadata_filter={"legs": 4}, corpus_filter="mammals")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "mammals" in corpora.stdout
    assert (best["metadata"]["version"], best["metadata"]["legs"]) == ("7", 4)


@pytest.mark.slow
def test_omitted_attributes_and_deleted_folders_disappear(stack: LocalStack, tmp_path: Path) -> None:
    folder = tmp_path / "voles"
    folder.mkdir()
    (folder / "vole.md").write_text("The vole digs a tunnel.")
    (folder / "species.csv").write_text("text,habitat\nThe water vole swims.,river\nThe bank vole climbs.,forest\n")
    (folder / "species.csv.metadata.json").write_bytes(record_sidecar())

    def voles() -> set[str]:
        found = stack.search("vole", metadata_filter={"corpus": "voles"}, top_k=10, deduplicate_by="chunk")
        return {result["content"] for result in found if result["metadata"].get("corpus") == "voles"}

    first = stack.run("ingest", folder, "--corpus", "voles")
    before = voles()
    (river, *_) = stack.search("vole", metadata_filter={"habitat": "river"})
    second = stack.run("ingest", folder)
    after = voles()
    unattended = stack.run("delete", "voles/")
    deleted = stack.run("delete", "voles/", "--yes", "--json")
    left = [result for result in stack.search("vole", top_k=10) if "/voles/" in result["source"]]

    assert (first.returncode, second.returncode) == (0, 0), first.stdout + second.stdout + second.stderr
    assert before == {"The vole digs a tunnel.", "The water vole swims.", "The bank vole climbs."}
    assert (river["content"], river["metadata"]["habitat"]) == ("The water vole swims.", "river")
    assert after == set()
    assert unattended.returncode == 2
    assert deleted.returncode == 0, deleted.stderr
    assert [document["status"] for document in json.loads(deleted.stdout)["documents"]] == ["DELETED", "DELETED"]
    assert left == []


def letters(stack: LocalStack, uri: str) -> int:
    failures = json.loads(stack.run("failures", "--json").stdout)
    return sum(len(entry["message_ids"]) for entry in failures["documents"] if entry["uri"] == uri)


@pytest.mark.slow
def test_a_failed_document_is_listed_replayed_and_listed_again(stack: LocalStack) -> None:
    uri = stack.put("failures/empty.md", "")
    stack.settled(uri)

    # A dead letter comes after the registry says that the document has failed.
    eventually(lambda: letters(stack, uri) == 1)
    listed = stack.run("failures")
    replayed = stack.run("replay", uri)
    assert eventually(lambda: letters(stack, uri) == 1)
    stack.put("failures/empty.md", "Not empty any more.")
    stack.settled(uri)
    cleared = stack.run("replay", uri)

    assert uri in listed.stdout
    assert "The file is empty." in listed.stdout
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    assert f"FAILED {uri}: " in replayed.stdout
    assert cleared.returncode == 0, cleared.stdout + cleared.stderr
    assert uri not in stack.run("failures").stdout


def test_reconcile_compares_everything_and_shows_the_report(stack: LocalStack, handbook: Path) -> None:
    done = stack.run("reconcile", timeout=120)
    as_json = stack.run("reconcile", "--json", timeout=120)

    report = json.loads(as_json.stdout)["report"]
    assert (done.returncode, as_json.returncode) == (0, 0), done.stdout + done.stderr
    assert f"compared: documents {report['compared']['documents']}" in " ".join(done.stdout.split())
    assert report["compared"]["documents"] >= len(list(handbook.rglob("*.md")))


def test_doctor_takes_a_probe_through_the_whole_stack(stack: LocalStack) -> None:
    done = stack.run("doctor", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {check["name"]: check["status"] for check in report["checks"]}
    del found["dead letters"]  # other tests leave some
    assert [*found.items()] == [
        *((name, "skipped") for name in ("models", "data source", "quotas", "model access")),  # of an account
        *(("permissions", "ok"), ("knowledge base", "ok"), ("text recognition", "ok"), ("alarms", "ok"), ("api", "ok")),
        ("word search", "skipped"),  # the local knowledge base decides
        *(("upload", "ok"), ("search", "ok"), ("answer", "ok"), ("relevance", "ok"), ("clean-up", "ok")),
    ]
    assert report["healthy"]
    listed = stack.request("GET", "/api/documents")[1]["documents"]
    assert not [each for each in listed if each["key"].startswith("ragstack-doctor/")]


def test_a_second_stack_in_the_same_folder_is_refused(stack: LocalStack) -> None:
    options = ("--port", "--bedrock-port", "--answers-port", "--console-port")
    ports = [part for option, port in zip(options, free_ports(4), strict=True) for part in (option, str(port))]

    same_place = stack.run("up", *ports)
    same_data = stack.run("up", *ports, "--data-dir", "data")

    for done in (same_place, same_data):
        assert done.returncode == 3
        assert done.stderr.startswith("Error: A local stack is running already")
