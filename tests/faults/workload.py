"""What people do to a bucket while all of it is being ingested: uploads, overwrites and deletions, in a seeded order.

Most of it straight to the bucket, some of it over HTTP.

Everything that is done to one key is done by one thread, in order, so that what must come of it is known. Each content
has a word of its own that no other has.
"""

import json
import random
import string
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.core.uris import SIDECAR_SUFFIX, s3_uri
from tests.faults.document_client import DocumentClient
from tests.faults.lives import BAD_KEYS, BAD_SIDECARS, BEGINNINGS, TOO_LONG, Life, fault_of

THREADS: Final = 8

LATE: Final = 0.7
"""Share of the time until which all uploads are done, with the changes during their ingestion."""

CORPORA: Final = ("handbook", "contracts", "letters")
FOLDERS: Final = ("", "a/", "deep/er/", "mit Umlauten äöü/", "plus+and space/", "100%/")
SUBJECTS: Final = ("vacation days", "travel expenses", "the coffee machine", "notice periods", "parental leave")


@dataclass(frozen=True)
class Share:
    """How much of the work is of which kind; of one each. And whether there are keys that are too long."""

    bad_key: float = 0.04
    bad_sidecar: float = 0.04
    unreadable: float = 0.06
    no_sidecar: float = 0.25
    sidecar_first: float = 0.4
    deleted_with_sidecar: float = 0.8
    recreated: float = 0.4
    soon: float = 0.5
    uploaded_over_http: float = 0.15
    too_long: bool = True
    deleted_over_http: float = 0.3


@dataclass(frozen=True)
class _Task:
    at: float
    life: Life
    act: Callable[[Life, random.Random], None]
    seed: int


class Workload:
    """Does the work.

    Attributes:
        lives: Every key that was ever written.
        done: Operations so far.
    """

    def __init__(
        self,
        s3: Any,
        client: DocumentClient,
        bucket: str,
        seed: int,
        *,
        uploads: int,
        overwrites: int,
        deletions: int,
        share: Share = Share(),
    ) -> None:
        self.lives: list[Life] = []
        self.done = 0
        self._s3 = s3
        self._client = client
        self._bucket = bucket
        self._share = share
        self._lock = threading.Lock()
        self._chance = random.Random(seed)
        self._tasks = sorted(self._plan(uploads, overwrites, deletions), key=lambda task: task.at)

    @property
    def words_of_now(self) -> dict[str, str]:
        """The word of each document that must be found, by URI."""
        return {self._uri(life): life.words[-1] for life in self.lives if life.body is not None and not life.bad}

    @property
    def words_of_old(self) -> dict[str, str]:
        """Each word that must not be found any more, with the URI of the document that had it."""
        return {
            word: self._uri(life)
            for life in self.lives
            for word in life.words
            if life.body is None or life.bad or word != life.words[-1]
        }

    @property
    def contents(self) -> dict[str, set[str]]:
        """The entity tags of all that ever lay there, by URI."""
        return {self._uri(life): life.etags for life in self.lives}

    @property
    def bad(self) -> dict[str, str]:
        """Why documents in the bucket cannot be indexed, by URI."""
        return {self._uri(life): life.bad for life in self.lives if life.body is not None and life.bad}

    def run_first(self, seconds: float = 0.0) -> None:
        """Do the first uploads and their changes, over at least this many seconds."""
        self._run([task for task in self._tasks if task.at < LATE], 0.0, seconds / LATE)

    def run_last(self, seconds: float = 0.0) -> None:
        """Do the rest."""
        self._run([task for task in self._tasks if task.at >= LATE], LATE, seconds / (1 - LATE))

    def go_on(self, operations: int) -> None:
        """Do some more of all kinds, when the rest is done."""
        for _ in range(operations):
            act = self._chance.choice((self._overwrite, self._overwrite, self._delete))
            act(self._chance.choice(self.lives), self._chance)
            self.done += 1

    def _run(self, tasks: Sequence[_Task], begin: float, seconds: float) -> None:
        lanes: list[list[_Task]] = [[] for _ in range(THREADS)]
        numbers = {life.key: number for number, life in enumerate(self.lives)}
        for task in tasks:
            lanes[numbers[task.life.key] % THREADS].append(task)
        start = time.monotonic()

        def work(lane: list[_Task]) -> None:
            for task in lane:
                time.sleep(max(0.0, start + (task.at - begin) * seconds - time.monotonic()))
                task.act(task.life, random.Random(task.seed))
                with self._lock:
                    self.done += 1

        with ThreadPoolExecutor(THREADS) as pool:
            for outcome in [pool.submit(work, lane) for lane in lanes]:
                outcome.result()

    def _plan(self, uploads: int, overwrites: int, deletions: int) -> Iterator[_Task]:
        starts: list[float] = []
        for number in range(uploads):
            self.lives.append(self._new_life(number))
            starts.append(number / uploads * LATE)
            yield self._task(starts[-1], number, self._upload)
        for act, times in ((self._overwrite, overwrites), (self._delete, deletions)):
            for _ in range(times):
                number = self._chance.randrange(uploads)
                soon = self._chance.random() < self._share.soon
                at = starts[number] + self._chance.uniform(0, 0.03) if soon else self._chance.uniform(LATE, 1)
                yield self._task(at, number, act)

    def _task(self, at: float, number: int, act: Callable[[Life, random.Random], None]) -> _Task:
        return _Task(at, self.lives[number], act, self._chance.getrandbits(64))

    def _new_life(self, number: int) -> Life:
        name = f"{self._chance.choice(FOLDERS)}{number:04}"
        drawn = self._chance.random()
        if drawn < self._share.bad_key:
            return Life(
                name + self._chance.choice([end for end in BAD_KEYS if self._share.too_long or end != TOO_LONG])
            )
        return Life(f"{name}.{self._chance.choice(('txt', 'txt', 'md', 'html', 'csv'))}")

    def _upload(self, life: Life, chance: random.Random) -> None:
        body = self._content(life, chance)
        sidecar = None if chance.random() < self._share.no_sidecar else self._attributes(chance)
        is_permitted = body and sidecar not in BAD_SIDECARS and not fault_of(life.key)
        if is_permitted and chance.random() < self._share.uploaded_over_http:
            self._upload_over_http(life, body, sidecar)
        else:
            self._put(life, body, sidecar, first=chance.random() < self._share.sidecar_first)

    def _upload_over_http(self, life: Life, body: bytes, sidecar: bytes | None) -> None:
        attributes = None if sidecar is None else json.loads(sidecar)["metadataAttributes"]
        self._client.upload(life.key, body, attributes)
        life.gets(body)
        life.sidecar = sidecar or life.sidecar

    def _overwrite(self, life: Life, chance: random.Random) -> None:
        """Change one thing or the other, or nothing at all."""
        if life.body is None:
            self._upload(life, chance)
            return
        match chance.choice(("content", "content", "same", "sidecar", "no sidecar", "both")):
            case "content":
                self._put_body(life, self._content(life, chance))
            case "same":
                self._put_body(life, life.body)
            case "sidecar":
                self._put_sidecar(life, self._attributes(chance))
            case "no sidecar":
                self._delete_object(life.key + SIDECAR_SUFFIX)
                life.sidecar = None
            case "both":
                self._put(life, self._content(life, chance), self._attributes(chance), first=chance.random() < 0.5)

    def _delete(self, life: Life, chance: random.Random) -> None:
        """Delete a document, most often with its sidecar, and now and then put another one there at once."""
        # Nothing that is drawn depends on how quickly the registry learned of the document.
        over_http = life.body is not None and chance.random() < self._share.deleted_over_http
        with_sidecar = over_http or chance.random() < self._share.deleted_with_sidecar
        if not (over_http and self._client.delete(life.key)):
            self._delete_object(life.key)
            if with_sidecar:
                self._delete_object(life.key + SIDECAR_SUFFIX)
        life.body = None
        if with_sidecar:
            life.sidecar = None
        if chance.random() < self._share.recreated:
            self._upload(life, chance)

    def _content(self, life: Life, chance: random.Random) -> bytes:
        if chance.random() < self._share.unreadable:
            # An empty word stands for a content that nothing can be found of.
            life.words.append("")
            return chance.choice((b"", b" \n "))
        word = "".join(chance.choices(string.ascii_lowercase, k=14))
        life.words.append(word)
        subject = chance.choice(SUBJECTS)
        lines = [f"This note is about {subject} and its name is {word}."]
        lines += [f"Rule {number} of {word} on {subject}: ask first." for number in range(chance.randrange(1, 12))]
        beginning = next((mark for end, mark in BEGINNINGS.items() if life.key.endswith(end)), b"")
        return beginning + "\n\n".join(lines).encode()

    def _attributes(self, chance: random.Random) -> bytes:
        if chance.random() < self._share.bad_sidecar:
            return chance.choice(BAD_SIDECARS)
        attributes: dict[str, Any] = {
            "corpus": chance.choice(CORPORA),
            "version": f"{chance.randrange(1, 4)}.0",
            "year": chance.randrange(1990, 2030),
        }
        if chance.random() < 0.5:
            attributes["tags"] = chance.sample(["new", "draft", "internal", "ärger"], chance.randrange(1, 4))
        return json.dumps({"metadataAttributes": attributes}).encode()

    def _put(self, life: Life, body: bytes, sidecar: bytes | None, *, first: bool) -> None:
        if sidecar is not None and first:
            self._put_sidecar(life, sidecar)
        self._put_body(life, body)
        if sidecar is not None and not first:
            self._put_sidecar(life, sidecar)

    def _put_body(self, life: Life, body: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=life.key, Body=body)
        life.gets(body)

    def _put_sidecar(self, life: Life, sidecar: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=life.key + SIDECAR_SUFFIX, Body=sidecar)
        life.sidecar = sidecar

    def _delete_object(self, key: str) -> None:
        self._s3.delete_object(Bucket=self._bucket, Key=key)

    def _uri(self, life: Life) -> str:
        return s3_uri(self._bucket, life.key)
