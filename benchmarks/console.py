"""Measure the console in Chromium: sources of an answer, first rows of 100,000 documents, frames while scrolling.

The page is the built one (`npm --prefix web run build`). The list is in memory, because the emulators of DynamoDB read
the whole table for each page; a page has as many documents as are requested. They are written as JSON before the
measurement, so that the server does not take the browser's processor, and each answer takes `--page-ms`.

The sources of an answer are visible in the frame after the one that has their text. Their time begins when the server
writes the event ``done``, of an answer of ten sentences that cite ten passages, and ends after that frame.

Frames a second depend on what else the machine does. The processor time of the page's main thread does not: 18 ms for
each frame are 55 frames a second.

Run: ``python benchmarks/console.py [--documents 100000]``, with Playwright and Debian's Chromium installed.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from parts.measuring import percentile, table
from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from ragstack_common.answers.answer import Answerer, Sentence, Source, Timings, Usage
from ragstack_common.registry.documents import MAX_LIMIT
from ragstack_common.registry.records import DocumentRecord, Observation, Status, Transition
from ragstack_common.services.ask_models import AskResponse, SourcesEvent
from ragstack_common.services.document_views import to_summary

STATIC: Final = Path(__file__).parent.parent / "ragstack_local" / "console" / "static"
CHROMIUM: Final = "/usr/bin/chromium"
FIRST_ROWS_MS: Final = 300
PAGE_MS: Final = 500
FRAMES_PER_SECOND: Final = 55
CORPORA: Final = ("engineering", "legal", "people", "product")
SETTINGS: Final = {"auth": "none", "anonymous": True, "issuer": None, "client_id": None, "scope": None}
ME: Final = {"name": "benchmark", "principals": [], "rights": ["read"], "labels": None, "write_prefixes": None}

SOURCES_MS: Final = 100

FRAME: Final = """window.frame = () => new Promise((done, fail) => requestAnimationFrame((now) =>
  now < 900_000 ? done(now) : fail(Error("the page does not show what is waited for"))))"""
"""Waits for the next frame, at most until fifteen minutes after the page was opened."""

SOURCES: Final = """async (number) => {
  location.hash = "#/ask?q=" + number;
  const isShown = (head) => head.textContent.includes(`question-${number}.`);
  while (![...document.querySelectorAll(".source h3")].some(isShown)) await frame();
  await frame();
  return Date.now();
}"""

FIRST_ROWS: Final = """async () => {
  const started = performance.now();
  location.hash = "#/documents";
  while (!document.querySelector("a[data-row]")) await frame();
  await frame();
  return performance.now() - started;
}"""

OPENED: Final = """async () => {
  while (!document.querySelector("a[data-row]")) await frame();
  await frame();
  return performance.now();
}"""

SCROLL: Final = """async ([seconds, pixels]) => {
  const list = document.querySelector(".documents");
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
"""When the answer to each question was written, in milliseconds since 1970."""


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


def listed(documents: int) -> list[bytes]:
    """Return each document of the list as JSON, by URI."""
    records = sorted(map(_record, range(documents)), key=lambda record: record.uri)
    return [json.dumps(to_summary(record).model_dump(mode="json")).encode() for record in records]


def page_of(documents: Sequence[bytes], query: Mapping[str, str]) -> bytes:
    """Return the page of the list that a request asks for; a token is the number of documents before the page."""
    first = int(query.get("next_token", 0))
    end = first + int(query.get("limit", MAX_LIMIT))
    token = json.dumps(str(end) if end < len(documents) else None).encode()
    return b'{"documents": [%b], "next_token": %b}' % (b", ".join(documents[first:end]), token)


def answer_to(number: str) -> AskResponse:
    """Return the answer to a question, as a model writes it."""
    text, sentences, sources = "", [], []
    for each in range(1, 11):
        sentence = f"Part-time employees have the same number of weeks, as document {each} says"
        start, text = len(text), f"{text}{sentence} [{each}]. "
        sentences.append(
            Sentence(start=start, end=len(text) - 1, text=f"{sentence}.", citations=[each], unsupported=False)
        )
        name = f"s3://documents/question-{number}.{each}.md"
        sources.append(Source(number=each, content=PASSAGE, source=name, score=0.5, cited=True))
    return AskResponse(
        question=number,
        answer=text.strip(),
        answered=True,
        sentences=sentences,
        sources=sources,
        answerer=Answerer(provider="bedrock", model="model"),
        usage=Usage(),
        timings=Timings(retrieval_ms=1.0, total_ms=300.0),
        slices=(),
        corpora=(),
        complete=True,
    )


class Handler(SimpleHTTPRequestHandler):
    """Serves the page and the part of the interface that the list uses."""

    protocol_version = "HTTP/1.1"

    def __init__(self, documents: Sequence[bytes], page_ms: float, *args: Any) -> None:
        self._documents = documents
        self._page_ms = page_ms
        super().__init__(*args, directory=str(STATIC))

    def handle(self) -> None:
        """Answer the requests of a connection; a page that was left may reset it."""
        with suppress(ConnectionResetError):
            super().handle()

    def do_GET(self) -> None:
        """Answer a request."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        match url.path:
            case "/console.json":
                self._answer({**SETTINGS, "title": "RAGStack", "questions": []})
            case "/api/me":
                self._answer(ME)
            case "/api/corpora":
                self._answer({"corpora": [], "complete": True})
            case "/api/versions":
                self._answer({"versions": [], "documents": [], "complete": True})
            case "/api/facets":
                self._answer({"facets": [], "documents": len(self._documents), "next_token": None})
            case "/api/documents":
                time.sleep(self._page_ms / 1000)
                self._write(page_of(self._documents, query))
            case _:
                super().do_GET()

    def do_POST(self) -> None:
        """Find nothing, or stream an answer: its passages, and a moment later all of it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/retrieve":  # the first page looks for questions to suggest
            self._answer({"results": []})
            return
        number = body["question"]
        answer = answer_to(number)
        found = SourcesEvent(
            question=number, sources=answer.sources, slices=(), corpora=(), complete=True, retrieval_ms=1.0
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"event: sources\ndata: {found.model_dump_json()}\n\n".encode())
        time.sleep(0.3)
        WRITTEN[number] = 1000 * time.time()
        self.wfile.write(f"event: done\ndata: {answer.model_dump_json()}\n\n".encode())
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
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, listed(arguments.documents), arguments.page_ms))
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(FRAME)
        rows, is_met = measure(page, f"http://127.0.0.1:{server.server_port}/", arguments)
        browser.close()
    server.shutdown()
    Console(width=160).print(table(f"{arguments.documents:,} documents", ("what", "figure", "target"), rows))
    return 0 if is_met else 1


def measure(page: Page, url: str, arguments: argparse.Namespace) -> tuple[list[list[str]], bool]:
    """Open the list, scroll it, load all of it, and scroll again."""
    opened, opening, whole = [], [], []
    for _ in range(arguments.rounds):
        page.goto(f"{url}#/ask")
        page.wait_for_selector("textarea")
        with main_thread(page) as worked:
            opened.append(page.evaluate(FIRST_ROWS))
        opening += worked
        page.goto("about:blank")
        page.goto(f"{url}#/documents")
        whole.append(page.evaluate(OPENED))
        page.goto("about:blank")
    sources, drawing = measure_sources(page, url, arguments.questions)
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
        ["question to sources, main thread, median", f"{statistics.median(drawing):.0f} ms", ""],
        ["first rows, median", f"{statistics.median(opened):.0f} ms", f"{FIRST_ROWS_MS} ms"],
        ["first rows, slowest", f"{max(opened):.0f} ms", f"{FIRST_ROWS_MS} ms"],
        ["first rows, main thread, median", f"{statistics.median(opening):.0f} ms", ""],
        ["the page with first rows, median", f"{statistics.median(whole):.0f} ms", f"{PAGE_MS} ms"],
        ["scrolling while pages load", _shown(scrolled), target],
        ["loading all pages", f"{loaded / 1000:.1f} s", ""],
        ["scrolling, all loaded", _shown(scrolled_all), target],
        ["dragging the scroll bar, 50 rows a frame", _shown(fast), ""],
    ]
    is_fast = percentile(sources, 95) <= SOURCES_MS and statistics.median(whole) <= PAGE_MS
    return rows, is_fast and max(opened) <= FIRST_ROWS_MS and min(frames) >= FRAMES_PER_SECOND


@contextmanager
def main_thread(page: Page) -> Iterator[list[float]]:
    """Measure the milliseconds that the page's main thread works within the block, which are then in the list."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    before, found = worked(), list[float]()
    yield found
    found.append(worked() - before)
    devtools.detach()


def measure_sources(page: Page, url: str, questions: int) -> tuple[list[float], list[float]]:
    """Ask, and return for each question the milliseconds between the server's answer and the frame after its sources.

    The other ones are those that the main thread works for the question and its answer.
    """
    seen, drawing = {}, []
    for number in range(1, questions + 1):
        page.goto(f"{url}#/ask")
        page.wait_for_selector("textarea")
        with main_thread(page) as worked:
            seen[str(number)] = page.evaluate(SOURCES, number)
        drawing += worked
        page.evaluate("sessionStorage.clear()")  # the next question begins another conversation
        page.goto("about:blank")
    return [seen[number] - WRITTEN[number] for number in seen], drawing


def scroll(page: Page, seconds: float, pixels: int) -> dict[str, Any]:
    """Scroll by *pixels* each frame, and measure what the main thread works for it."""
    with main_thread(page) as worked:
        scrolled: dict[str, Any] = page.evaluate(SCROLL, [seconds, pixels])
    return {**scrolled, "work_ms": worked[0] / len(scrolled["times"])}


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
