"""Checks of what is kept of people: conversations, gaps, and when they were seen."""

from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from ragstack_local.certify.check import Json, Source, Topic
from ragstack_local.certify.deployed import deployment
from ragstack_local.certify.deployed.deployment import Deployment
from ragstack_local.certify.deployed.people import people
from ragstack_local.certify.deployed.samples import ASCII, sample
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address

KEPT: Final = Topic("kept", "conversations, gaps (docs/ANSWERS.md)", "")

CONVERSATIONS: Final = "/api/conversations"
SEEN_SECONDS: Final = 60.0


def _ask(site: Site, deployed: Deployment, caller: Address, conversation: str) -> bool:
    """Ask in a conversation; return whether the turn was kept. The answer does not matter."""
    asked = {"question": f"{site.token}?", "conversation": conversation}
    answer = deployed.call("POST", "/api/ask", asked, caller=caller, streams=True)
    return answer.succeeded and answer.content["conversation"]["saved"] is True


@KEPT.check(
    "conversation",
    "The functions can write, list, read and delete a person's conversations, and nobody else can read them",
    Source.GUESS,
    {"kept": [True, True], "turns": 2, "listed": True, "another person": 404, "deleted": 1, "afterwards": 404},
)
def _conversation(site: Site) -> Json:
    """Keep two turns in a conversation, read it as two people, and delete it."""
    found, deployed = site.shared(people), deployment.of(site)
    conversation = str(uuid4())
    path = f"{CONVERSATIONS}/{conversation}"
    try:
        kept = [_ask(site, deployed, found.reader, conversation) for _ in range(2)]
        own = deployed.call("GET", path, caller=found.reader)
        listed: Any = deployed.read("GET", CONVERSATIONS, caller=found.reader)["conversations"]
        other = deployed.call("GET", path, caller=found.operator).status
    finally:
        answer = deployed.call("DELETE", path, caller=found.reader)
    return {
        "kept": kept,
        "turns": len(own.content["turns"]) if own.succeeded else own.status,
        "listed": any(each["id"] == conversation for each in listed),
        "another person": other,
        "deleted": answer.content["deleted"] if answer.succeeded else answer.status,
        "afterwards": deployed.call("GET", path, caller=found.reader).status,
    }


@KEPT.check(
    "names",
    "A document is found by words of its folder and name, in any order",
    Source.GUESS,
    {"found": True, "without a word": False},
    used_by="finding documents (docs/DOCUMENTS.md)",
)
def _names(site: Site) -> Json:
    """Look for a document by words of its key; the run's token is in the name of the folder."""
    deployed, document = deployment.of(site), sample(site, ASCII)

    def finds(words: str) -> bool:
        listed = deployed.read("GET", f"/api/documents/find?{urlencode({'query': words})}")
        return any(each["id"] == document.id for each in listed["documents"])

    name = ASCII.name.partition(".")[0]
    return {"found": finds(f"{name} {site.token}"), "without a word": finds(f"{name} {site.token} {uuid4().hex}")}


@KEPT.check(
    "erased",
    "An operator erases a person, of whom conversations and gaps are kept, and a search notes them again",
    Source.GUESS,
    {"conversations": 1, "gaps": 1, "seen": True, "conversation": 404, "noted by a search": True},
    used_by="erasure (docs/ACCESS.md#erasure)",
    aws_only="it would erase what the users of the local issuer have kept",
)
def _erased(site: Site) -> Json:
    """Keep a conversation and a gap of the reader, erase them, and search as the reader."""
    found, deployed = site.shared(people), deployment.of(site)
    conversation, name = str(uuid4()), deployed.read("GET", "/api/me", caller=found.reader)["name"]
    _ask(site, deployed, found.reader, conversation)
    deployed.read("POST", "/api/gaps", {"question": f"{site.token}?"}, caller=found.reader)
    erased: Any = deployed.read("POST", "/api/people/erase", {"principal": name}, caller=found.operator)
    afterwards = deployed.call("GET", f"{CONVERSATIONS}/{conversation}", caller=found.reader).status
    deployed.read("POST", "/api/retrieve", {"query": site.token}, caller=found.reader)

    def is_listed() -> bool:
        listed = deployed.read("GET", "/api/people", caller=found.operator)["people"]
        return any(each["principal"] == name for each in listed)

    with suppress(TimeoutError):
        site.eventually(is_listed, "the note of a person who searched", SEEN_SECONDS)
    return {
        **{part: erased[part] for part in ("conversations", "gaps", "seen")},
        "conversation": afterwards,
        "noted by a search": is_listed(),
    }
