"""The demonstration: sample documents, and questions with the answers that they must find."""

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ragstack_common.core.artefacts import attachments_of
from ragstack_common.core.uris import s3_uri
from ragstack_common.http.console import EXAMPLE
from ragstack_common.reading.ocr.engines import how_to_install
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import Status
from ragstack_common.services.access import Explanation
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.services.document_models import Facets
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_local.api.calls import each, run
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.connection.address import Address
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import FOUND, Uploaded
from ragstack_local.connection.roots import Roots
from ragstack_local.errors import StackError
from ragstack_local.files.documents import ApiDocuments, StackDocuments
from ragstack_local.files.ingestion import ingest, note_skipped
from ragstack_local.files.uploads import select
from ragstack_local.show import display, results
from ragstack_local.show.answers import print_stream
from ragstack_local.show.explanation import print_explanation
from ragstack_local.signin.provider import ClientRegistration, Provider
from ragstack_local.stack.deployment import installed_recognition


@dataclass(frozen=True)
class SearchExample:
    """A question about the sample handbook."""

    arguments: tuple[str, ...]
    body: Mapping[str, Any]
    expected: tuple[str, ...]
    within: int
    note: str

    def is_answered_by(self, results: list[dict[str, Any]]) -> bool:
        """Whether the best results are as expected."""
        sources = [result["source"] for result in results[: self.within]]
        found = all(any(source.endswith(name) for source in sources) for name in self.expected)
        return found and (self.within > 0 or not results)


_RATE_LIMIT: Final = "How many requests a minute may one API key make?"
_HOTEL: Final = "What is the hotel limit per night in London?"
_LEAVE: Final = "How many days of annual leave do I have?"

SEARCHES: Final = (
    SearchExample(
        (EXAMPLE, "--top-k", "1"),
        {"query": EXAMPLE, "top_k": 1},
        ("security-incident-response.pdf",),
        1,
        "This passage is in a PDF.",
    ),
    SearchExample(
        (_RATE_LIMIT, "--top-k", "2"),
        {"query": _RATE_LIMIT, "top_k": 2},
        ("api-rate-limits-v2.md", "api-rate-limits-v1.md"),
        2,
        "Two documents answer: version 1, which is obsolete (60), and version 2 (600). The question names no version,"
        " and the next one says which is meant.",
    ),
    SearchExample(
        (_RATE_LIMIT, "--filter", '{"current": true}', "--top-k", "3", "--explain"),
        {"query": _RATE_LIMIT, "metadata_filter": {"current": True}, "top_k": 3, "explain": True},
        ("api-rate-limits-v2.md",),
        1,
        "The filter says what is meant: documents whose attribute `current` is true rank higher, and the others can"
        " still be found. The explanation shows how far the filter is"
        " trusted, and the ranks with and without it.",
    ),
    SearchExample(
        (_HOTEL, "--rerank", "lexical", "--top-k", "2", "--explain"),
        {"query": _HOTEL, "rerank": "lexical", "top_k": 2, "explain": True},
        ("expenses-and-travel.docx",),
        1,
        "The reranker compares the words of the question with each passage, here a table in a Word document. The"
        " explanation shows what each of its signals contributed.",
    ),
    SearchExample(
        (_LEAVE, "--corpus", "people", "--top-k", "2"),
        {"query": _LEAVE, "corpus_filter": "people", "top_k": 2},
        ("leave-and-holidays-2026.md",),
        1,
        "A filter prefers; a corpus excludes. Only documents of the corpus `people` are searched.",
    ),
    SearchExample(
        (_RATE_LIMIT, "--doc-version", "3"),
        {"query": _RATE_LIMIT, "version_filter": "3"},
        (),
        0,
        "No document has version 3, so nothing is found, although other versions have the answer.",
    ),
)


@dataclass(frozen=True)
class AnswerExample:
    """A question to answer.

    Attributes:
        expected: The document that the answer cites; None if no document answers the question.
        place: Where in the document that is: members of the source.
    """

    arguments: tuple[str, ...]
    body: Mapping[str, Any]
    expected: str | None
    note: str
    place: Mapping[str, Any] = field(default_factory=dict)

    def is_answered_by(self, answer: Mapping[str, Any]) -> bool:
        """Whether the answer is as expected. What a model writes is not known before, unlike what is quoted."""
        if answer["answerer"]["provider"] == "bedrock":
            return True
        if not answer["answered"]:
            return self.expected is None
        first = next(source for source in answer["sources"] if source["cited"])
        is_there = first.items() >= self.place.items()
        return self.expected is not None and is_there and str(first["source"]).endswith(self.expected)


_GYM: Final = "Does the company pay for a gym membership?"

ANSWERS: Final = (
    AnswerExample(
        (EXAMPLE,),
        {"question": EXAMPLE},
        "security-incident-response.pdf",
        "`ragstack ask` answers the question. Each citation names a passage, and each quotation occurs in it: both are"
        " checked before they are shown.",
    ),
    AnswerExample(
        (_RATE_LIMIT, "--filter", '{"current": true}', "--filter-mode", "strict"),
        {"question": _RATE_LIMIT, "metadata_filter": {"current": True}, "filter_mode": "strict"},
        "api-rate-limits-v2.md",
        "Filters, corpora and versions count as in a search. A strict filter excludes what does not match, here the"
        " obsolete limit.",
    ),
    AnswerExample(
        (_GYM,),
        {"question": _GYM},
        None,
        "No document says so, and the answer admits it instead of inventing something.",
    ),
)

FOLDER: Final = "samples/more_formats"
MAIL: Final = f"{FOLDER}/coffee-machines.eml"
ATTACHMENT: Final = f"{attachments_of(MAIL)}maintenance-contract.docx"
SCAN: Final = f"{FOLDER}/warehouse-lease.pdf"

_OPENING: Final = "When does the office in Porto open?"
_MAINTENANCE: Final = "How much does the maintenance of the coffee machines cost?"
_RENT: Final = "What is the monthly rent of the warehouse?"

CONVERTED: Final = (
    AnswerExample(
        (_OPENING,),
        {"question": _OPENING},
        f"{FOLDER}/office-in-porto.pptx",
        "The answer is on a slide of a presentation.",
        {"page": 2, "is_slide": True},
    ),
    AnswerExample(
        (_MAINTENANCE,),
        {"question": _MAINTENANCE},
        ATTACHMENT,
        "The mail does not say so, but the contract that is attached to it does.",
    ),
)
"""Questions about documents that are converted before they are indexed."""

SCANNED: Final = AnswerExample(
    (_RENT,),
    {"question": _RENT},
    SCAN,
    "The page is a picture. Its text was recognized, so it may have errors, and the source says so.",
    {"page": 1, "is_recognized": True},
)
"""A question that is asked only if text recognition is installed."""

DOCUMENT: Final = "samples/documents/people/leave-and-holidays-2026.md"

PEOPLE: Final = (
    (
        "alice",
        AnswerExample(
            (_LEAVE,),
            {"question": _LEAVE},
            DOCUMENT,
            "Alice is in the group people, which sees the documents of the people team.",
        ),
    ),
    (
        "bob",
        AnswerExample(
            (_LEAVE,),
            {"question": _LEAVE},
            None,
            "Bob is in engineering. Searches, answers, lists and counts are as if those documents did not exist.",
        ),
    ),
)
"""Two people ask the same question, and who they are decides what they are told."""

OPERATOR: Final = "olga"


def run_demo(connection: Connection, root: Path) -> None:
    """Upload the documents of samples/, wait until they are searchable, and ask questions.

    Raises:
        StackError: A document is not searchable, or a question did not find its answer.
        ApiError: A query failed.
    """
    api = HttpOperations(lambda: Address(connection.api_url, answers_url=connection.answers_url))
    statuses = _upload(connection, root, api)
    scan = s3_uri(connection.bucket, SCAN)
    can_read_scans = installed_recognition() is not None
    if any(status not in FOUND for uri, status in statuses.items() if can_read_scans or uri != scan):
        display.print_unsearchable(statuses)
        raise StackError(f"Not every document became searchable: {display.summary(statuses)}")
    searchable = sum(status in FOUND for status in statuses.values())
    others = run(api.request("GET", "/api/facets", Facets)).documents - searchable
    if others > 0:
        found_too = f"{display.counted(others, 'other document')} in the data folder can be found too."
        display.console.print(found_too, style="yellow")
    _print_conversions(api, scan, statuses[scan])
    missed: list[SearchExample | AnswerExample] = [question for question in SEARCHES if not _search(api, question)]
    asked = (*ANSWERS, *CONVERTED, SCANNED) if can_read_scans else (*ANSWERS, *CONVERTED)
    missed += [question for question in asked if not _ask(api, question)]
    if connection.oidc_issuer is not None:
        missed += _ask_as_people(connection, connection.oidc_issuer)
    if missed and others <= 0:
        arguments = "; ".join(shlex.join(question.arguments) for question in missed)
        raise StackError(f"These questions were not answered as expected: {arguments}")


def _upload(connection: Connection, root: Path, api: HttpOperations) -> dict[str, DocumentStatus]:
    """Upload the samples, and return the statuses of all documents by URI, with that of the attachment."""
    roots = Roots.for_stack(connection)
    samples = select([root / "samples" / "documents", root / FOLDER], prefix="samples", roots=roots)
    note_skipped(samples)
    roots.write()
    documents = StackDocuments.for_stack(connection)
    done = ingest(documents, samples.files, timeout_seconds=300)
    statuses = done.statuses
    failed_before = [
        file
        for file in samples.files
        if (uri := s3_uri(connection.bucket, file.key)) not in done.uploaded and statuses.get(uri) == str(Status.FAILED)
    ]
    if connection.people_url is not None and _explained(api, f"user:{OPERATOR}").label is None:
        display.console.print("An earlier version uploaded these documents without access labels: uploading them again")
        statuses = ingest(documents, samples.files, timeout_seconds=300, force=True).statuses
    elif failed_before:
        # Text recognition may have been installed since.
        display.console.print("What failed in an earlier run is uploaded again")
        statuses |= ingest(documents, failed_before, timeout_seconds=300, force=True).statuses
    attachment = s3_uri(connection.bucket, ATTACHMENT)
    # It is in the bucket by now: the converter writes attachments before the text of their mail.
    awaited = {attachment: Uploaded("", None)}
    return {**statuses, **ApiDocuments(api).follow(awaited, lambda _: None, timeout_seconds=120)}


def _print_conversions(api: HttpOperations, scan: str, status: DocumentStatus) -> None:
    """Say what became of the attachment and of the scan."""
    name, mail = PurePosixPath(ATTACHMENT).name, PurePosixPath(MAIL).name
    display.console.print(f"{name}, attached to {mail}, became a document of its own.", soft_wrap=True)
    if status in FOUND:
        (detail,) = ApiDocuments(api).details(scan)
        pages = detail.receipt.recognized if detail.receipt else []
        confidence = f", with {min(page.confidence for page in pages):.0%} confidence" if pages else ""
        display.console.print(f"{PurePosixPath(SCAN).name} was read from its image{confidence}.", soft_wrap=True)
        return
    display.print_unsearchable({scan: status})
    commands = f"{how_to_install('tesseract')}, or {how_to_install('rapidocr')}"
    advice = f"To read scans, install text recognition ({commands}), and run this again."
    display.console.print(advice, style="yellow", soft_wrap=True)


def _explained(api: HttpOperations, viewer: str) -> Explanation:
    parameters = {"document": DOCUMENT, "as": viewer}
    return run(api.request("GET", "/api/access/explain", Explanation, parameters=parameters))


def _ask_as_people(connection: Connection, issuer: str) -> list[AnswerExample]:
    """Ask as two people, show why they got different answers, and return what was not answered as expected."""
    application = ClientRegistration(str(connection.oidc_audience), (str(connection.oidc_audience),))
    provider = Provider.discover(issuer)

    def api_as(user: str) -> HttpOperations:
        address = Address.for_stack(connection, token=provider.silently(application, user).bearer)
        _show_command("login", ("--user", user))
        return HttpOperations(lambda: address)

    missed = [question for user, question in PEOPLE if not _ask(api_as(user), question)]
    bob = "user:bob,group:engineering"
    api = api_as(OPERATOR)
    _show_command("access", ("explain", DOCUMENT, "--as", bob))
    found = _explained(api, bob)
    verdict = "sees" if found.visible else "does not see"
    display.console.print(f"{bob} {verdict} it: {found.rule}", soft_wrap=True)
    note = "Olga is an operator: she sees every document, and may ask who sees which, and why."
    display.console.print(note, style="green")
    return missed


def _show_command(name: str, arguments: Sequence[str]) -> None:
    display.console.print()
    command = f"$ {display.program()} {name} {shlex.join(arguments)}"
    display.console.print(command, style="bold cyan", soft_wrap=True)


def _ask(api: HttpOperations, question: AnswerExample) -> bool:
    _show_command("ask", question.arguments)
    with closing(each(api.ask(AskRequest.model_validate(question.body)))) as events:
        answer = print_stream(events)
    is_answered = question.is_answered_by(answer)
    if is_answered:
        display.console.print(question.note, style="green")
    return is_answered


def _search(api: HttpOperations, question: SearchExample) -> bool:
    _show_command("query", question.arguments)
    start = time.perf_counter()
    answer = run(api.search(RetrieveRequest.model_validate(question.body))).model_dump(mode="json")
    took = time.perf_counter() - start
    results.print_results(answer, question.body["query"])
    if "explain" in question.body:
        print_explanation(answer["results"])
    display.console.print(f"{took * 1000:.0f} ms through API Gateway", style="dim")
    is_answered = question.is_answered_by(answer["results"])
    if is_answered:
        display.console.print(question.note, style="green")
    return is_answered
