"""The documentation agrees with the code."""

import builtins
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from local_bedrock import service
from local_bedrock.limits.quotas import Quotas
from ragstack_common.access import AccessPolicy, Guard, Right
from ragstack_common.access.audit import AUDIT
from ragstack_common.access.callers import caller_from_key
from ragstack_common.answers.answer import Quotation, Sentence, Source
from ragstack_common.core import errors
from ragstack_common.core.errors import InvalidFilterError, NotAllowedError
from ragstack_common.core.uris import MAX_URI_CHARACTERS
from ragstack_common.filters import parse, to_bedrock
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.ingestion.outcomes import DETAIL_TYPES, METRICS, event_detail
from ragstack_common.ingestion.sidecars import (
    MAX_LIST_MEMBERS,
    parse_sidecar,
)
from ragstack_common.reading import formats
from ragstack_common.reconciliation.compare import SAMPLES_PER_KIND, Difference
from ragstack_common.registry.catalogue import MAX_COUNTED_PER_DOCUMENT, MAX_VALUE_CHARACTERS
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.registry.snapshot import VALUES_LEFT_OUT
from ragstack_common.registry.table import INVALID_ITEMS
from ragstack_common.search import RetrievalBackend, factory
from ragstack_common.services.ask_models import EVENTS, AskRequest, AskResponse
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings import ingestion, names
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES, MAX_SIDECAR_BYTES
from ragstack_common.tools import RetrieverSettings, Tool
from ragstack_common.tools.schemas import INPUT_SCHEMA
from ragstack_local.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
CONFIGURATION = (DOCS / "CONFIGURATION.md").read_text(encoding="utf-8")
ANSWERS, DOCUMENTS, LIBRARY, LOCAL_BEDROCK, OPERATIONS, SEARCH, TOOLS = (
    (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for name in ("ANSWERS", "DOCUMENTS", "LIBRARY", "LOCAL_BEDROCK", "OPERATIONS", "SEARCH", "TOOLS")
)


def table(document: str, first_header: str) -> dict[str, str]:
    """Map the first column of a table to its second, both without backticks."""
    return {row[0].strip("`"): row[1].strip("`") for row in rows_after(document, f"| {first_header} |")}


def rows_after(document: str, start: str) -> list[list[str]]:
    lines = document[document.index(start) :].splitlines()
    if not lines[0].startswith("|"):
        lines = lines[1:]
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def json_blocks(document: str) -> list[str]:
    return re.findall(r"```json\n(.*?)```", document, flags=re.DOTALL)


def anchors(document: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_option_is_documented_with_its_default() -> None:
    documented = {
        (command, option)
        for commands, _, options in rows_after(CONFIGURATION, "| command | purpose | options |")
        for command in re.findall(r"`([\w ]+)`", commands)
        for option in re.findall(r"`(--[^`]+)`", options)
    }
    actual = {
        (name, written(parameter))
        for name, command in every_command()
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name != "verbose"  # of every command
    }

    assert documented == actual


def every_command() -> Iterator[tuple[str, Any]]:
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        yield name, command
        for inner, each in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", each


def written(option: Any) -> str:
    """Return an option with its default, as the table writes it; an option that is on is written as its opposite."""
    if option.default is True:
        return str(option.secondary_opts[0])
    if option.default in (None, False, ""):
        return str(option.opts[0])
    default = f"{option.default:g}" if isinstance(option.default, float) else option.default
    return f"{option.opts[0]} {default}"


def test_the_documented_members_of_a_request_match_the_model() -> None:
    """SEARCH documents the members of a search, ANSWERS those that only a question has."""
    shared = re.findall(r"`(\w+)`", ANSWERS.partition("A question takes ")[2].partition(" as [a search]")[0])

    assert table(SEARCH, "member | default").keys() == RetrieveRequest.model_fields.keys()
    assert set(shared) <= RetrieveRequest.model_fields.keys()
    assert {*shared, *table(ANSWERS, "ask member")} == AskRequest.model_fields.keys()


def test_the_events_of_a_stream_are_documented_in_their_order() -> None:
    assert list(table(ANSWERS, "event")) == list(EVENTS)


def test_the_example_of_an_answer_has_the_right_members_and_offsets() -> None:
    (example,) = map(json.loads, json_blocks(ANSWERS))
    (sentence,), (source,) = example["sentences"], example["sources"]

    assert example.keys() <= AskResponse.model_fields.keys()
    assert sentence.keys() == Sentence.model_fields.keys()
    assert sentence["quotations"][0].keys() == Quotation.model_fields.keys()
    assert source.keys() <= Source.model_fields.keys()
    assert example["answer"][sentence["start"] : sentence["end"]] == example["answer"]
    quoted = source["quoted"][0]
    assert source["content"][quoted["start"] : quoted["end"]] == sentence["quotations"][0]["text"]


def test_exactly_the_members_of_the_retriever_s_input_are_documented() -> None:
    assert table(TOOLS, "member | type").keys() == INPUT_SCHEMA["properties"].keys()


def test_the_example_of_collections_is_valid() -> None:
    (example,) = (block for block in json_blocks(TOOLS) if '"type"' in block)

    chosen = RetrieverSettings.from_env({"RETRIEVER_TOOL_COLLECTIONS": example}).collections

    keys = {name: collection.partition_key for name, collection in chosen.items()}
    assert keys == {"handbook": "corpus", "notes": "folder", "papers": None}


def test_the_members_of_a_tool_are_documented() -> None:
    members: Any = {*Tool.__annotations__, *vars(Tool)}
    documented = {"name", "description", "input_schema", "output_schema", "run", "close"}

    assert documented <= members
    assert all(f"`{name}`" in TOOLS or f"`async {name}(" in TOOLS for name in documented)


def test_every_engine_and_wrapper_is_documented() -> None:
    engines, wrappers = (table(LIBRARY, f"`type` | {what}") for what in ("what it searches", "what it adds"))

    assert {*engines, *wrappers} == set(factory._BUILT_IN)


def test_every_documented_error_exists() -> None:
    documented = re.findall(r"`(\w+Error)`", LIBRARY.partition("### Errors\n")[2].partition("\n## ")[0])

    assert {"InvalidFilterError", "MissingPackageError"} <= set(documented)
    assert [name for name in documented if not hasattr(errors, name) and not hasattr(builtins, name)] == []


def test_the_documented_methods_match_the_interface() -> None:
    documented = set(re.findall(r"^\| `(\w+)\(", LIBRARY.partition("## The interface\n")[2], re.MULTILINE))

    assert documented == {n for n, f in vars(RetrievalBackend).items() if inspect.isfunction(f) and n[0] != "_"}


def test_the_section_that_the_specification_refers_to_exists() -> None:
    assert "\n## Query-Time Filtering\n" in CONFIGURATION


@pytest.mark.parametrize("row", rows_after(SEARCH, "<!-- refused -->"))
def test_a_filter_documented_as_rejected_is_rejected(row: list[str]) -> None:
    with pytest.raises(InvalidFilterError):
        to_bedrock(parse(json.loads(row[0].strip("`"))))


@pytest.mark.parametrize("block", json_blocks(DOCUMENTS))
def test_an_example_of_a_sidecar_is_valid(block: str) -> None:
    assert parse_sidecar(block.encode())


@pytest.mark.parametrize("block", [block for block in json_blocks(SEARCH) if "error" not in block])
def test_an_example_of_a_filter_is_valid(block: str) -> None:
    assert to_bedrock(parse(json.loads(block)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_have_targets(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked.read_text(encoding="utf-8")), anchor


def test_every_operation_of_the_local_bedrock_is_documented() -> None:
    rows = {row[0]: re.findall(r"`(\w+)`", row[1]) for row in rows_after(LOCAL_BEDROCK, "| service | operations |")}

    assert sorted(name for names in rows.values() for name in names) == sorted(service.OPERATIONS)


def test_every_quota_is_documented_with_its_value() -> None:
    rows = rows_after(LOCAL_BEDROCK, "| over it | quotas |")
    documented = {name: float(value) for row in rows for name, value in re.findall(r"`(\w+)=([\d.]+)`", row[1])}

    assert documented == vars(Quotas())


def test_the_searchable_document_statuses_are_documented() -> None:
    documented = {row[0].strip("`"): row[1] for row in rows_after(DOCUMENTS, "<!-- statuses -->\n")}

    assert documented.keys() == set(Status)
    assert {Status(name) for name, found in documented.items() if found == "yes"} == SEARCHABLE


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.UPLOADED])
def test_the_diagram_of_states_shows_every_status(status: Status) -> None:
    assert f">{status}</text>" in (DOCS / "ingestion" / "states.svg").read_text(encoding="utf-8")


def test_the_limits_of_documents_are_documented() -> None:
    documented = [int(row[1].replace(",", "")) for row in rows_after(DOCUMENTS, "<!-- limits -->\n")]

    assert documented == [
        MAX_SIDECAR_BYTES,
        STORE_RULES[names.S3_VECTORS].metadata_bytes,
        STORE_RULES[names.S3_VECTORS].metadata_keys,
        MAX_LIST_MEMBERS,
        MAX_DOCUMENT_BYTES,
        MAX_URI_CHARACTERS,
        MAX_COUNTED_PER_DOCUMENT,
        MAX_VALUE_CHARACTERS,
    ]


def test_every_kind_of_difference_is_documented() -> None:
    documented = [row[0].strip("`") for row in rows_after(OPERATIONS, "<!-- differences -->\n")]

    assert documented == [*Difference]
    assert f"up to {SAMPLES_PER_KIND} examples" in OPERATIONS


def test_every_metric_of_the_ingestion_path_is_documented() -> None:
    documented = {
        name for row in rows_after(OPERATIONS, "<!-- metrics -->\n") for name in re.findall(r"`(\w+)`", row[0])
    }
    folders = [ROOT / "ragstack_common" / name for name in ("ingestion", "reconciliation")]
    sources = [file.read_text(encoding="utf-8") for folder in folders for file in folder.glob("*.py")]
    added = {name for source in sources for name in re.findall(r'add_metric\(\s*"(\w+)"', source)}

    assert documented == added | set(METRICS.values()) | {
        ingestion.JOBS_NOT_COMPLETE,
        INVALID_ITEMS,
        VALUES_LEFT_OUT,
    }


def test_the_example_event_has_the_members_of_a_real_event() -> None:
    event, _ = [json.loads(block) for block in json_blocks(OPERATIONS) if "detail-type" in block]

    assert event["source"] == names.EVENT_SOURCE
    assert event["detail-type"] == DETAIL_TYPES[Status(event["detail"]["status"])]
    assert event["detail"].keys() == event_detail(DocumentRecord(event["detail"]["uri"])).keys()
    assert event["detail"]["id"] == DocumentRecord(event["detail"]["uri"]).id
    assert all(f"`{name}`" in OPERATIONS for name in DETAIL_TYPES.values())


def test_the_example_of_an_audit_event_is_a_real_one() -> None:
    sent: list[dict[str, Any]] = []
    _, event = [json.loads(block) for block in json_blocks(OPERATIONS) if "detail-type" in block]
    guard = Guard(AccessPolicy(), sink=sent.append)

    with pytest.raises(NotAllowedError):
        guard.require(caller_from_key("reader"), Right.WRITE, "POST /api/documents")

    assert sent == [event["detail"]]
    assert (event["source"], event["detail-type"]) == (names.EVENT_SOURCE, AUDIT)


def test_the_documented_endings_are_those_that_are_read() -> None:
    documented = [ending for row in rows_after(DOCUMENTS, "<!-- formats -->\n") for ending in row[1].split(", ")]

    assert sorted(documented) == sorted(suffix.removeprefix(".") for suffix in formats.MEDIA_TYPES)
    assert ", ".join(suffix.removeprefix(".") for suffix in formats.BEDROCK_SUFFIXES[:-1]) in DOCUMENTS
