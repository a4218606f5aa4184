"""Documents over HTTP, on the whole chain.

The local S3 checks every condition of an upload's policy, and not its signature, which AWS checks as well: that a
changed policy is refused is therefore not shown here.
"""

from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3

from ragstack_common.registry.table import document_id
from tests.e2e.support import LocalStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

TYPE = "text/markdown"


def ask(stack: LocalStack, key: str, content: bytes, **more: Any) -> Any:
    body = {"key": key, "content_type": TYPE, "size": len(content), **more}
    status, answer = stack.request("POST", "/api/documents", body)
    assert status == 201, answer
    return answer


def send(permission: Any, content: bytes, **changed: str) -> int:
    """Post the form as a browser does; returns the status."""
    fields = {**permission["upload"]["fields"], **changed}
    form = [*fields.items(), ("file", ("whatever.md", content, TYPE))]
    answer = urllib3.request("POST", permission["upload"]["url"], fields=form, timeout=120, retries=False)
    return answer.status


def document(stack: LocalStack, identifier: str) -> Any:
    status, answer = stack.request("GET", f"/api/documents/{identifier}")
    return answer if status == 200 else None


def listed(stack: LocalStack, **parameters: Any) -> Any:
    status, answer = stack.request("GET", f"/api/documents?{urlencode(parameters)}")
    assert status == 200, answer
    return answer


def becomes(stack: LocalStack, identifier: str, status: str) -> Any:
    def look() -> Any:
        found = document(stack, identifier)
        return found if found and found["status"] == status else None

    return eventually(look)


def test_a_document_is_followed_from_its_upload_to_its_deletion(stack: LocalStack) -> None:
    attributes = {"corpus": "birds", "version": "3"}
    content = b"# Herring gulls\n\nHerring gulls crack mussels on parking lots."
    permission = ask(stack, "api/Vögel & Möwen.md", content, attributes=attributes)
    identifier = permission["id"]
    not_yet = stack.request("GET", f"/api/documents/{identifier}")

    sent = send(permission, content)
    named = listed(stack, key="api/Vögel & Möwen.md")["documents"]
    indexed = becomes(stack, identifier, "INDEXED")

    assert (not_yet[0], not_yet[1]["error"]["code"]) == (404, "DocumentNotFound")
    assert sent == 204
    assert [each["id"] for each in named] == [identifier]
    assert named[0]["searchable"] is (named[0]["status"] == "INDEXED")
    assert identifier == document_id(indexed["uri"])
    assert (indexed["attributes"], indexed["corpus"], indexed["searchable"]) == (attributes, "birds", True)
    assert (indexed["again"], indexed["waiting_for"], indexed["knowledge_base_status"]) == (False, None, "INDEXED")
    assert [line["status"] for line in indexed["history"]][-1] == "INDEXED"
    assert indexed["attempts"] == 1
    hit = stack.found("What do herring gulls crack?", "mussels")
    assert (hit["source"], hit["metadata"]["corpus"]) == (indexed["uri"], "birds")
    assert facet(stack, "corpus")["birds"] == 1
    corpora = stack.request("GET", "/api/corpora")[1]["corpora"]
    assert {"name": "birds", "configured": False, "searchable": True, "documents": 1} in corpora

    status, deleting = stack.request("DELETE", f"/api/documents/{identifier}")
    assert (status, deleting["waiting_for"] is not None) == (202, True)
    deleted = becomes(stack, identifier, "DELETED")
    assert (deleted["searchable"], deleted["size"]) == (False, None)
    assert not any("mussels" in result["content"] for result in stack.search("What do herring gulls crack?"))
    assert "birds" not in facet(stack, "corpus")
    assert stack.request("DELETE", f"/api/documents/{identifier}")[0] == 404


def test_the_last_merged_attribute_deletes_the_sidecar_and_the_document_is_indexed_without(stack: LocalStack) -> None:
    permission = ask(stack, "api/kestrel.md", b"The kestrel hovers.", attributes={"topic": "kestrels"})
    assert send(permission, b"The kestrel hovers.") == 204
    path = f"/api/documents/{permission['id']}"
    becomes(stack, permission["id"], "INDEXED")

    status, changed = stack.request("PATCH", path, {"attributes": {"topic": None}, "merge": True})
    indexed = eventually(lambda: (found := document(stack, permission["id"])) and not found["attributes"] and found)

    assert (status, changed["again"]) == (202, True)
    assert (indexed["attributes"], becomes(stack, permission["id"], "INDEXED")["attributes"]) == ({}, {})
    assert stack.request("DELETE", path)[0] == 202


def facet(stack: LocalStack, key: str) -> dict[Any, int]:
    status, answer = stack.request("GET", f"/api/facets?key={key}")
    assert status == 200
    return {value["value"]: value["documents"] for each in answer["facets"] for value in each["values"]}


@pytest.mark.parametrize(
    ("content", "changed", "status"),
    [
        (b"", {}, 400),
        (b"Text", {}, 400),
        (b"Text, and more.", {}, 400),
        (b"Text.", {"Content-Type": "text/html"}, 403),
        (b"Text.", {"key": "api/another.md"}, 403),
        (b"Text.", {"acl": "public-read"}, 403),
    ],
    ids=["empty", "too short", "too long", "another type", "another key", "another field"],
)
def test_the_bucket_refuses_other_uploads_than_the_permitted_one(
    stack: LocalStack, content: bytes, changed: dict[str, str], status: int
) -> None:
    permission = ask(stack, "api/bound.md", b"Text.")

    assert send(permission, content, **changed) == status
    assert listed(stack, key="api/bound.md")["documents"] == []
    assert listed(stack, key="api/another.md")["documents"] == []
