"""Measure the console in Chromium: sources of an answer, first rows of 100,000 documents, frames while scrolling.

The page is the built one (`npm --prefix web run build`), and the listing is the code of the documents function. Its
table is an index in memory, because the emulators of DynamoDB read the whole table for each page. The pages are made
before the measurement, so that the server does not take the browser's processor, and each answer takes `--page-ms`.

Sources are visible in the frame after the one that has their text; their time begins when the server writes the event
``sources``, of ten passages, and ends after that frame.

Frames a second depend on what else the machine does. The time of the page's main thread for each frame does not: 18 ms
are 55 frames a second.

Run: ``python benchmarks/console.py [--documents 100000]``, with Playwright and Debian's Chromium installed.
"""

import argparse
import json
import statistics
import sys
import time
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlsplit

from parts.measuring import percentile, table
from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from ragstack_common.answers.answer import Source
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry, Listing
from ragstack_common.registry.records import DocumentRecord, Observation, Status, Transition, record_to_item
from ragstack_common.registry.table import URI
from ragstack_common.services.ask_models import SourcesEvent
from ragstack_common.services.document_views import to_summary

STATIC: Final = Path(__file__).parent.parent / "ragstack_local" / "console" / "static"
CHROMIUM: Final = "/usr/bin/chromium"
FIRST_ROWS_MS: Final = 300
FRAMES_PER_SECOND: Final = 55
CORPORA: Final = ("engineering", "legal", "people", "product")
SETTINGS: Final = {"auth": "none", "anonymous": True, "issuer": None, "client_id": None, "scope": None}
ME: Final = {"name": "benchmark", "principals": [], "rights": ["read"], "labels": None, "write_prefixes": None}

SOURCES_MS: Final = 100

SOURCES: Final = """async (number) => {
  location.hash = "#/ask?q=" + number;
  const frame = () => new Promise(requestAnimationFrame);
  while (!document.querySelector(`#source-1 h3`)?.textContent.includes(`question-${number}.`)) await frame();
  await frame();
  return Date.now();
}"""

FIRST_ROWS: Final = """async () => {
  const started = performance.now();
  location.hash = "#/documents";
  const frame = () => new Promise(requestAnimationFrame);
  while (!document.querySelector("a[data-row]")) await frame();
  await frame();
  return performance.now() - started;
}"""

SCROLL: Final = """async ([seconds, pixels]) => {
  const list = document.querySelector(".documents");
  const frame = () => new Promise(requestAnimationFrame);
  let last = await frame();
  const started = last, times = [];
  let empty = 0;
  while (last - started < seconds * 1000) {
    list.scrollTop += pixels;
    const now = await frame();
    times.push(now - last);
    last = now;
    const box = list.getBoundingClientRect();
    const under = document.elementFromPoint(box.left + 40, box.top + box.height / 2);
    if (!under?.closest("tr:not(.gap)")) empty++;
  }
  return { times, empty, row: Number(list.querySelector("tbody tr:not(.gap):last-child, tbody tr:nth-last-child(2)")
    ?.ariaRowIndex ?? 0) };
}"""

LOAD_ALL: Final = """async () => {
  const list = document.querySelector(".documents");
  const frame = () => new Promise(requestAnimationFrame);
  const started = performance.now();
  while (list.querySelector("table").ariaRowCount === "-1") {
    list.scrollTop = list.scrollHeight;
    await frame();
  }
  list.scrollTop = list.scrollHeight / 2;
  await frame();
  return performance.now() - started;
}"""


PASSAGE: Final = "The leave policy says that part-time employees have the same number of weeks. " * 12

WRITTEN: Final[dict[str, float]] = {}
"""When the sources of each question were written, in milliseconds since 1970."""


class Table:
    """The registry's index of all documents, sorted by URI, and the queries that :class:`DocumentRegistry` makes."""

    def __init__(self, documents: int) -> None:
        items = (record_to_item(_record(number), "benchmark") for number in range(documents))
        self._items = sorted(items, key=_uri)

    def query(self, **request: Any) -> dict[str, Any]:
        """Return the items after the start key; none is deleted, so that all pass the filter."""
        start = request.get("ExclusiveStartKey")
        first = 0 if start is None else bisect_right(self._items, _uri(start), key=_uri)
        found = self._items[first : first + request["Limit"]]
        answer: dict[str, Any] = {"Items": found, "ScannedCount": len(found)}
        return answer | ({"LastEvaluatedKey": found[-1]} if len(found) == request["Limit"] else {})


def _uri(item: Mapping[str, Any]) -> str:
    return str(item[URI]["S"])


def _record(number: int) -> DocumentRecord:
    corpus, year, at = CORPORA[number % 4], 2015 + number % 12, 1_700_000_000.0 + number
    status = Status.FAILED if number % 100 == 0 else Status.INDEXED
    observed = Observation(
        f'"{number}"',
        size=1_000 + number * 37 % 900_000,
        last_modified=at,
        attributes={"corpus": corpus, "year": year},
    )
    return DocumentRecord(
        f"s3://documents/{corpus}/{year}/contract-{number:06}.pdf",
        revision=1,
        status=status,
        observed=observed,
        history=(Transition(at, status),),
        received_at=at,
        updated_at=at + 3,
        finished_at=at + 3,
    )


def listing_pages(documents: int) -> dict[str | None, bytes]:
    """Return each page of the list as JSON, by the token that requests it."""
    registry = DocumentRegistry("registry", cast("Any", Table(documents)))
    pages: dict[str | None, bytes] = {}
    token = None
    while True:
        page = registry.page(Listing(), MAX_LIMIT, token)
        found = [to_summary(record).model_dump(mode="json") for record in page.documents]
        pages[token] = json.dumps({"documents": found, "next_token": page.next_token}).encode()
        token = page.next_token
        if token is None:
            return pages


class Handler(SimpleHTTPRequestHandler):
    """Serves the page and the part of the interface that the list uses."""

    protocol_version = "HTTP/1.1"

    def __init__(self, pages: Mapping[str | None, bytes], page_ms: float, *args: Any) -> None:
        self._pages = pages
        self._page_ms = page_ms
        super().__init__(*args, directory=str(STATIC))

    def do_GET(self) -> None:
        """Answer a request."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        match url.path:
            case "/console.json":
                self._answer({**SETTINGS, "title": "RAGStack", "example": None})
            case "/api/me":
                self._answer(ME)
            case "/api/corpora":
                self._answer({"corpora": [], "complete": True})
            case "/api/versions":
                self._answer({"versions": [], "documents": [], "complete": True})
            case "/api/facets":
                self._answer({"facets": [], "documents": len(self._pages) * MAX_LIMIT, "next_token": None})
            case "/api/documents":
                time.sleep(self._page_ms / 1000)
                self._write(self._pages[query.get("next_token")])
            case _:
                super().do_GET()

    def do_POST(self) -> None:
        """Begin the stream of an answer with its sources, and end it a moment later."""
        number = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["question"]
        event = SourcesEvent(
            slices=(),
            corpora=(),
            question=number,
            sources=[
                Source(number=each, content=PASSAGE, source=f"s3://documents/question-{number}.{each}.md", score=0.5)
                for each in range(1, 11)
            ],
            complete=True,
            retrieval_ms=1.0,
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        WRITTEN[number] = 1000 * time.time()
        self.wfile.write(f"event: sources\ndata: {event.model_dump_json()}\n\n".encode())
        self.wfile.flush()
        time.sleep(0.3)
        self.close_connection = True

    def _answer(self, value: Any) -> None:
        self._write(json.dumps(value).encode())

    def _write(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the page was left meanwhile
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--questions", type=int, default=40, help="whose sources are timed (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="of opening the list (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of scrolling (default: %(default)s)")
    parser.add_argument("--page-ms", type=float, default=60.0, help="of one page (default: %(default)s)")
    arguments = parser.parse_args()
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, listing_pages(arguments.documents), arguments.page_ms)
    )
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        rows, is_met = measure(page, f"http://127.0.0.1:{server.server_port}/", arguments)
        browser.close()
    server.shutdown()
    Console(width=160).print(table(f"{arguments.documents:,} documents", ("what", "figure", "target"), rows))
    return 0 if is_met else 1


def measure(page: Page, url: str, arguments: argparse.Namespace) -> tuple[list[list[str]], bool]:
    """Open the list, scroll it, load all of it, and scroll again."""
    opened = []
    for _ in range(arguments.rounds):
        page.goto(f"{url}#/ask")
        page.wait_for_selector("textarea")
        opened.append(page.evaluate(FIRST_ROWS))
        page.goto("about:blank")
    sources = measure_sources(page, url, arguments.questions)
    page.goto(f"{url}#/documents")
    page.wait_for_selector("a[data-row]")
    scrolled = scroll(page, arguments.seconds, 130)
    loaded = page.evaluate(LOAD_ALL)
    scrolled_all = scroll(page, arguments.seconds, 130)
    fast = scroll(page, arguments.seconds, -2600)
    frames = [_frames(each) for each in (scrolled, scrolled_all)]
    target = f"{FRAMES_PER_SECOND} frames/s"
    rows = [
        ["sources visible, median", f"{statistics.median(sources):.0f} ms", ""],
        ["sources visible, p95", f"{percentile(sources, 95):.0f} ms", f"{SOURCES_MS} ms"],
        ["first rows, median", f"{statistics.median(opened):.0f} ms", f"{FIRST_ROWS_MS} ms"],
        ["first rows, slowest", f"{max(opened):.0f} ms", f"{FIRST_ROWS_MS} ms"],
        ["scrolling while pages load", _shown(scrolled), target],
        ["loading all pages", f"{loaded / 1000:.1f} s", ""],
        ["scrolling, all loaded", _shown(scrolled_all), target],
        ["dragging the scroll bar, 50 rows a frame", _shown(fast), ""],
    ]
    is_fast = percentile(sources, 95) <= SOURCES_MS
    return rows, is_fast and max(opened) <= FIRST_ROWS_MS and min(frames) >= FRAMES_PER_SECOND


def measure_sources(page: Page, url: str, questions: int) -> list[float]:
    """Ask, and return the milliseconds between each event of the server and the frame after its sources are drawn."""
    page.goto(f"{url}#/ask")
    page.wait_for_selector("textarea")
    seen = {str(number): page.evaluate(SOURCES, number) for number in range(1, questions + 1)}
    return [seen[number] - WRITTEN[number] for number in seen]


def scroll(page: Page, seconds: float, pixels: int) -> dict[str, Any]:
    """Scroll by *pixels* each frame, and measure what the main thread works for it."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    before = worked()
    scrolled: dict[str, Any] = page.evaluate(SCROLL, [seconds, pixels])
    work = worked() - before
    devtools.detach()
    return {**scrolled, "work_ms": 1000 * work / len(scrolled["times"])}


def _frames(scrolled: Mapping[str, Any]) -> float:
    times: list[float] = scrolled["times"]
    return 1000 / statistics.mean(times)


def _shown(scrolled: Mapping[str, Any]) -> str:
    times = sorted(scrolled["times"])
    figures = [
        f"{_frames(scrolled):.1f} frames/s",
        f"p99 {times[int(len(times) * 0.99)]:.0f} ms",
        f"main thread {scrolled['work_ms']:.1f} ms a frame",
        f"to row {scrolled['row']:,}",
    ]
    if scrolled["empty"]:
        figures.append(f"{scrolled['empty']} of {len(times)} frames without rows")
    return ", ".join(figures)


if __name__ == "__main__":
    sys.exit(main())
