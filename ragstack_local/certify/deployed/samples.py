"""The documents that a run uploads, through the API as a program does."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from ragstack_local.certify.deployed import calls, deployment
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.deployment import Deployment, UnexpectedStatusError
from ragstack_local.certify.documents import pdf
from ragstack_local.certify.site import Site

ATTRIBUTE: Final = "certify"
"""The attribute of all documents that holds the token of the run, so that searches find no others."""

KIND: Final = "kind"
"""The attribute that holds the name of the sample."""

INDEXED_SECONDS: Final = 300.0
"""Third parties measured 37 to 264 seconds for PDF files."""

SOON: Final = f"within {INDEXED_SECONDS:g} s"
LATE: Final = f"after more than {INDEXED_SECONDS:g} s"
"""When a document is in its final status after its upload."""

FINDABLE_SECONDS: Final = 60.0

AT_ONCE: Final = "by the first search"
LATER: Final = f"within {FINDABLE_SECONDS:g} s"
NEVER: Final = f"not within {FINDABLE_SECONDS:g} s"
"""When searches find a document after it is INDEXED."""

ENDED: Final = ("INDEXED", "FAILED", "DELETED")


@dataclass(frozen=True)
class Sample:
    """A document.

    Attributes:
        name: Name of the file, and value of the attribute :data:`KIND`.
        question: What a search for it asks.
        word: A word that no other document has.
        sentence: What the answer must say, character by character.
    """

    name: str
    content_type: str
    content: bytes
    question: str
    word: str
    sentence: str


def _orchard(page: str) -> list[str]:
    """Return the lines of a page, of about two chunks, so that the end of a page is in a chunk of its own."""
    return [f"On the {page} page, row {row} of the quinces was picked, weighed and stored." for row in range(1, 46)]


def _text(name: str, content_type: str, question: str, word: str, sentence: str, form: str = "{}\n") -> Sample:
    return Sample(name, content_type, form.format(sentence).encode(), question, word, sentence)


ASCII: Final = _text(
    "ascii.txt",
    "text/plain",
    "When does the zinnia signal sound?",
    "zinnia",
    "The zinnia signal sounds at seven in the morning.",
)
UTF8: Final = _text(
    "utf8.txt",
    "text/plain",
    "Wie lange dauert die Überprüfung der Zwölfzylinder?",
    "Zwölfzylinder",
    "Die Überprüfung der Zwölfzylinder dauert genau fünf Stunden, für 90 €.",
)
MARKDOWN: Final = _text(
    "utf8.md",
    "text/markdown",
    "Où se trouve la clé du château de Montréal?",
    "château",
    "La clé du château de Montréal se trouve sous un bœuf de grès.",
    "# Clés\n\n{}\n",
)
MAIL: Final = _text(
    "mail.eml",
    "message/rfc822",
    "Which colour has the flag of the Ångström regatta?",
    "Ångström",
    "The flag of the Ångström regatta has the colour of apricots.",
    "From: a@example.com\r\nTo: b@example.com\r\nSubject: Regatta\r\nMIME-Version: 1.0\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{}\r\n",
)
PAGES: Final = Sample(
    "pages.pdf",
    "application/pdf",
    pdf(
        _orchard("first"),
        [*_orchard("second"), "The pelican crossing opens at nine in the evening."],
    ),
    "When does the pelican crossing open?",
    "pelican",
    "The pelican crossing opens at nine in the evening.",
)
SAMPLES: Final = (ASCII, UTF8, MARKDOWN, MAIL, PAGES)

PASSING: Final = _text(
    "passing.txt", "text/plain", "Who sweeps the porch?", "porch", "The sexton sweeps the porch on Saturdays."
)
"""Uploaded to try uploads. This and the next have other values of :data:`ATTRIBUTE`, so that searches for the samples
do not find them."""

DELETED: Final = _text(
    "deleted.txt", "text/plain", "Who winds the tower clock?", "tower", "The verger winds the tower clock on Sundays."
)
"""Uploaded to be deleted."""

BROKEN: Final = Sample("broken.pdf", "application/pdf", b"%PDF-1.7 and nothing else", "", "", "")
"""Uploaded to fail for good."""


@dataclass(frozen=True)
class Uploaded:
    """A document that was uploaded.

    Attributes:
        detail: What the API says of the document, once it is in a final status.
        indexed: When it was in that status.
        found: When searches found it after that. Both are classes that are the same in every run.
    """

    id: str
    uri: str
    detail: Mapping[str, Any]
    indexed: str = ""
    found: str = NEVER

    @property
    def status(self) -> str:
        """Its final status."""
        return str(self.detail["status"])


def permitted(deployed: Deployment, sample: Sample, *, value: str = "", **more: Any) -> Mapping[str, Any]:
    """Request the upload of a sample; returns the answer of the API."""
    attributes = {ATTRIBUTE: value or deployed.site.token, KIND: sample.name}
    found: Mapping[str, Any] = deployed.read(
        "POST",
        "/api/documents",
        {
            "key": deployed.folder + sample.name,
            "content_type": sample.content_type,
            "size": len(sample.content),
            "attributes": attributes,
            **more,
        },
    )
    return found


def posted(upload: Mapping[str, Any], content: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    """Post a file with the form that the API signed."""
    return calls.send("POST", upload["url"], content, headers, form=upload["fields"])


def uploaded(deployed: Deployment, sample: Sample, *, value: str = "") -> Uploaded:
    """Upload a sample, and wait until it is in a final status.

    Raises:
        UnexpectedStatusError: The bucket refused it.
    """
    asked = permitted(deployed, sample, value=value)
    answer = posted(asked["upload"], sample.content)
    if not answer.succeeded:
        raise UnexpectedStatusError(f"The bucket answered {answer.status}")
    return Uploaded(asked["id"], asked["uri"], settled(deployed, asked["id"], ENDED))


def settled(deployed: Deployment, document_id: str, statuses: Sequence[str]) -> Mapping[str, Any]:
    """Wait until a document is in one of some statuses, and return what the API says of it."""

    def look() -> Mapping[str, Any] | None:
        answer = deployed.call("GET", f"/api/documents/{document_id}")
        if answer.status == HTTPStatus.NOT_FOUND:  # its event is on its way
            return None
        content: Mapping[str, Any] = answer.content
        return content if content["status"] in statuses else None

    found: Mapping[str, Any] | None = deployed.site.eventually(look, f"a document that is {' or '.join(statuses)}")
    assert found is not None, "`eventually` returns something"
    return found


def samples(site: Site) -> Mapping[str, Uploaded]:
    """The sample documents."""
    deployed = deployment.of(site)

    def one(sample: Sample) -> Uploaded:
        with site.within(deployment.SECONDS):  # in a thread of its own
            start = site.clock()
            made = uploaded(deployed, sample)
            is_soon = site.clock() - start <= INDEXED_SECONDS
            made = replace(made, indexed=SOON if is_soon else LATE)
            return replace(made, found=_found(deployed, sample)) if made.status == "INDEXED" else made

    with ThreadPoolExecutor(len(SAMPLES)) as threads:
        return dict(zip((each.name for each in SAMPLES), threads.map(one, SAMPLES), strict=True))


def sample(site: Site, wanted: Sample) -> Uploaded:
    """Return a sample document, uploaded with the others by the first check that needs one."""
    return site.shared(samples)[wanted.name]


def _found(deployed: Deployment, sample: Sample) -> str:
    if results(deployed, sample.question, sample):
        return AT_ONCE
    try:
        deployed.site.eventually(
            lambda: results(deployed, sample.question, sample), "a document that searches find", FINDABLE_SECONDS
        )
    except TimeoutError:
        return NEVER
    return LATER


def results(deployed: Deployment, query: str, *kinds: Sample) -> list[Mapping[str, Any]]:
    """Search in the documents of the run, or only in some of them; returns the results, best first."""
    chosen: dict[str, Any] = {ATTRIBUTE: {"$eq": deployed.site.token}}
    if kinds:
        chosen[KIND] = {"$in": [each.name for each in kinds]}
    return search(deployed, query, chosen)


def search(deployed: Deployment, query: str, filter_: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Search with a filter; returns the results, best first."""
    request = {"query": query, "metadata_filter": filter_, "filter_mode": "strict", "top_k": 20}
    found = deployed.read("POST", "/api/retrieve", request)
    return [*found["results"]]


def kind_of(result: Mapping[str, Any]) -> str:
    """Return the name of the sample that a result or a source is from."""
    return str(result["metadata"].get(KIND))
