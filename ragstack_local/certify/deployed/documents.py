"""Checks of documents: uploads as browsers send them, and what becomes of each kind of file."""

import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from ragstack_local.certify.check import Json, NotTried, Source, Topic
from ragstack_local.certify.deployed import calls, deployment
from ragstack_local.certify.deployed.samples import (
    ASCII,
    AT_ONCE,
    ATTRIBUTE,
    DELETED,
    ENDED,
    MAIL,
    MARKDOWN,
    PAGES,
    PASSING,
    SAMPLES,
    SOON,
    UTF8,
    Sample,
    permitted,
    posted,
    results,
    sample,
    samples,
    search,
    settled,
    uploaded,
)
from ragstack_local.certify.site import Site

READING: Final = "local_bedrock.reading"

UPLOADS: Final = Topic("uploads", "uploads of the console and of programs (docs/DOCUMENTS.md)", "")
DOCUMENTS: Final = Topic("documents", "documents (docs/DOCUMENTS.md)", "")

ELSEWHERE: Final = "https://example.com"
"""A page that may not upload."""


def console_origin(site: Site) -> str:
    """Return the origin of the console.

    Raises:
        NotTried: The stack has no console.
    """
    url = deployment.of(site).connection.console_url
    if url is None:
        raise NotTried("the console is not deployed: `make setup` builds it")
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@UPLOADS.check(
    "post",
    "S3 accepts an upload form that the API signed, and returns the ETag",
    Source.DOCUMENTATION,
    {"status": 204, "entity tag": True},
)
def _post(site: Site) -> Json:
    upload = permitted(deployment.of(site), PASSING, value=_other(site))["upload"]
    answer = posted(upload, PASSING.content)
    return {"status": answer.status, "entity tag": "etag" in answer.headers}


@UPLOADS.check(
    "post_of_a_page",
    "CORS lets the console read S3's answer to an upload",
    Source.DOCUMENTATION,
    {"status": 204, "allows the page": True},
)
def _post_of_a_page(site: Site) -> Json:
    """Post from the console and from another page, whose browser shows the answer only with the header."""
    deployed, own = deployment.of(site), console_origin(site)
    upload = permitted(deployed, PASSING, value=_other(site))["upload"]
    answer = posted(upload, PASSING.content, {"Origin": own})
    return {"status": answer.status, "allows the page": answer.headers.get("access-control-allow-origin") in (own, "*")}


@UPLOADS.check(
    "other_size",
    "S3 refuses an upload form if the file has another size than was signed",
    Source.DOCUMENTATION,
    {"longer": 400, "shorter": 400},
)
def _other_size(site: Site) -> Json:
    upload = permitted(deployment.of(site), PASSING, value=_other(site))["upload"]
    sizes = {"longer": PASSING.content + b"x", "shorter": PASSING.content[:-1]}
    return {name: posted(upload, content).status for name, content in sizes.items()}


@UPLOADS.check(
    "other_type", "S3 refuses an upload form with another content type than was signed", Source.DOCUMENTATION, 403
)
def _other_type(site: Site) -> Json:
    upload = permitted(deployment.of(site), PASSING, value=_other(site))["upload"]
    changed = {**upload, "fields": {**upload["fields"], "Content-Type": "text/html"}}
    return posted(changed, PASSING.content).status


@UPLOADS.check(
    "new_only",
    "S3 answers 412 to the second upload of a new document",
    Source.DOCUMENTATION,
    {"first": 200, "second": 412},
)
def _new_only(site: Site) -> Json:
    """Put a new document twice with the same signature: the second finds the first."""
    deployed = deployment.of(site)
    new = Sample(f"new-{secrets.token_hex(4)}.txt", PASSING.content_type, PASSING.content, "", "", "")
    upload = permitted(deployed, new, value=_other(site), overwrite=False)["upload"]
    first, second = (calls.send("PUT", upload["url"], new.content, upload["headers"]).status for _ in range(2))
    return {"first": first, "second": second}


@UPLOADS.check(
    "preflight",
    "CORS lets a browser upload documents from the console, and from no other page",
    Source.DOCUMENTATION,
    {"the console": "allowed", "another page": "refused"},
)
def _preflight(site: Site) -> Json:
    """Ask as a browser does before it puts a document."""
    deployed, own = deployment.of(site), console_origin(site)
    url = permitted(deployed, PASSING, value=_other(site))["upload"]["url"]
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type,if-none-match"}
    found = {}
    for name, origin in (("the console", own), ("another page", ELSEWHERE)):
        answer = calls.send("OPTIONS", url, None, {"Origin": origin, **asked})
        allowed = answer.headers.get("access-control-allow-origin") in (origin, "*")
        found[name] = "allowed" if answer.succeeded and allowed else "refused"
    return found


def _other(site: Site) -> str:
    """Return the value of the attribute of documents that are no samples."""
    return f"{site.token}-passing"


def _read(wanted: Sample) -> Callable[[Site], Json]:
    def observe(site: Site) -> Json:
        deployed, made = deployment.of(site), sample(site, wanted)
        detail = deployed.read("GET", f"/api/documents/{made.id}")
        found = results(deployed, wanted.question, wanted)
        return {
            "status": detail["status"],
            "found": bool(found),
            "every character": any(wanted.sentence in each["content"] for each in found),
            "receipt": "complete" if (detail["receipt"] or {}).get("complete") else "incomplete",
        }

    return observe


READ: Final = {"status": "INDEXED", "found": True, "every character": True, "receipt": "complete"}


@DOCUMENTS.check(
    "page",
    "Search results from the second page of a PDF file have the page 2",
    Source.THIRD_PARTY,
    {"page": 2},
    held_in=READING,
)
def _page(site: Site) -> Json:
    sample(site, PAGES)
    found = results(deployment.of(site), PAGES.question, PAGES)
    return {"page": next((each["page"] for each in found if PAGES.word in each["content"]), None)}


@DOCUMENTS.check(
    "indexed",
    "A small document is indexed within five minutes of its upload",
    Source.THIRD_PARTY,
    {each.name: SOON for each in SAMPLES},
)
def _indexed(site: Site) -> Json:
    return {name: made.indexed for name, made in site.shared(samples).items()}


@DOCUMENTS.check(
    "findable",
    "The first search after a document is INDEXED finds it",
    Source.THIRD_PARTY,
    {each.name: AT_ONCE for each in SAMPLES},
)
def _findable(site: Site) -> Json:
    return {name: made.found for name, made in site.shared(samples).items()}


@DOCUMENTS.check(
    "deleted",
    "A deleted document becomes DELETED, and no search finds it",
    Source.DOCUMENTATION,
    {"status": 202, "becomes": "DELETED", "found before": True, "found after": False},
)
def _deleted(site: Site) -> Json:
    """Delete a document that searches find."""
    deployed, value = deployment.of(site), f"{site.token}-deleted"
    made = uploaded(deployed, DELETED, value=value)
    chosen = {ATTRIBUTE: {"$eq": value}}
    before = search(deployed, DELETED.question, chosen)
    accepted = deployed.call("DELETE", f"/api/documents/{made.id}")
    status = settled(deployed, made.id, [each for each in ENDED if each != "INDEXED"])["status"]
    return {
        "status": accepted.status,
        "becomes": status,
        "found before": bool(before),
        "found after": any(each["source"] == made.uri for each in search(deployed, DELETED.question, chosen)),
    }


@DOCUMENTS.check(
    "viewed",
    "The function viewer returns an image of the page that has the searched words",
    Source.GUESS,
    {"status": 200, "page": 2},
)
def _viewed(site: Site) -> Json:
    made = sample(site, PAGES)
    answer = deployment.of(site).call("POST", "/api/view", {"uri": made.uri, "texts": [PAGES.sentence]})
    return {"status": answer.status, "page": answer.content.get("page") if answer.succeeded else None}


DOCUMENTS.check("ascii_text", "Every character of an ASCII text file is indexed", Source.MODEL, READ, held_in=READING)(
    _read(ASCII)
)
DOCUMENTS.check("utf8_text", "Every character of a UTF-8 text file is indexed", Source.GUESS, READ, held_in=READING)(
    _read(UTF8)
)
DOCUMENTS.check(
    "utf8_markdown",
    "Every character of a UTF-8 Markdown file is indexed",
    Source.THIRD_PARTY,
    READ,
    held_in=READING,
)(_read(MARKDOWN))
DOCUMENTS.check(
    "converted",
    "A mail is converted to UTF-8 Markdown, of which every character is indexed",
    Source.THIRD_PARTY,
    READ,
    held_in=READING,
)(_read(MAIL))
DOCUMENTS.check(
    "pdf", "Every character of the text of a PDF file is indexed", Source.DOCUMENTATION, READ, held_in=READING
)(_read(PAGES))
