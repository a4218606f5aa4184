"""A program that uploads and deletes over HTTP: what fails is tried again until it is done."""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.jobs import JobKind
from ragstack_common.registry.table import document_id

PATIENCE_SECONDS: Final = 120.0
PAUSE_SECONDS: Final = 0.5
ANSWER_SECONDS: Final = 60.0
"""Longer than any function has: what is tried again is not being done any more."""

KNOWN_SECONDS: Final = 60.0
"""Maximum time until the registry knows a document that is to be deleted."""

CONTENT_TYPE: Final = "text/plain"


class DocumentClient:
    """Calls the HTTP interface of a stack; *counts* counts calls, and retries by their reason."""

    def __init__(self, api_url: str, bucket: str) -> None:
        self.counts: Counter[str] = Counter()
        self.api_url = api_url
        self._bucket = bucket
        self._lock = threading.Lock()
        self._http = urllib3.PoolManager(maxsize=16, timeout=urllib3.Timeout(connect=5, read=ANSWER_SECONDS))

    def upload(self, key: str, body: bytes, attributes: Mapping[str, Any] | None) -> None:
        """Ask for permission, and post the form; attributes of None stay as they are."""
        request = {"key": key, "content_type": CONTENT_TYPE, "size": len(body)}
        status, answer = self._ask(
            "POST", "/api/documents", request if attributes is None else request | {"attributes": dict(attributes)}
        )
        assert status == HTTPStatus.CREATED, answer
        form = [*answer["upload"]["fields"].items(), ("file", (key, body, CONTENT_TYPE))]
        status, said = self._insist("POST", answer["upload"]["url"], fields=form)
        assert status == HTTPStatus.NO_CONTENT, said
        self._count("uploads")

    def delete(self, key: str) -> bool:
        """Delete a document with its sidecar; False if the registry still does not know it, so nothing was done."""
        path = f"/api/documents/{document_id(s3_uri(self._bucket, key))}"
        end = time.monotonic() + KNOWN_SECONDS
        while time.monotonic() < end:
            status, answer = self._ask("DELETE", path)
            assert status in (HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND), answer
            # Not found is also what is said when an earlier attempt was carried out and its answer lost.
            if status == HTTPStatus.ACCEPTED or self._is_gone(key):
                self._count("deletions")
                return True
            time.sleep(PAUSE_SECONDS)
        self._count("deletions too early")
        return False

    def start(self, kind: JobKind) -> bool:
        """Start a job, and tell whether it was; there may be one already."""
        status, answer = self._ask("POST", "/api/ingestion-jobs", {"kind": kind})
        assert status in (HTTPStatus.ACCEPTED, HTTPStatus.CONFLICT), answer
        return status == HTTPStatus.ACCEPTED

    def _is_gone(self, key: str) -> bool:
        status, answer = self._ask("GET", f"/api/documents?{urlencode({'key': key})}")
        assert status == HTTPStatus.OK, answer
        return all(document["status"] == "DELETED" for document in answer["documents"])

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, said = self._insist(method, self.api_url + path, **({} if body is None else {"json": body}))
        return status, json.loads(said)

    def _insist(self, method: str, url: str, **more: Any) -> tuple[int, bytes]:
        """Send a request until it is answered by anything but a failure that passes."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._http.request(method, url, retries=False, **more)
            except urllib3.exceptions.HTTPError as error:
                why, said = type(error).__name__, str(error)
            else:
                why, said = str(answer.status), repr(answer.data)
                if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                    return answer.status, answer.data
            self._count(f"tried again after {why}")
            assert time.monotonic() < end, f"{method} {url}: {said}"
            time.sleep(PAUSE_SECONDS)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1
