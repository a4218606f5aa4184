"""Files that are made to do harm: the view says why it does not show them, and shows the next document."""

import base64
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from lambdas.viewer import handler as viewer
from ragstack_common.reading import viewing
from ragstack_common.reading.pictures import MAX_PART_BYTES, MAX_PART_PIXELS
from ragstack_common.reading.warm_process import ProcessEnded, WarmProcess
from ragstack_common.registry.records import Status
from ragstack_common.services import view
from tests.ragstack_common.services.conftest import Aws, Show, error_of
from tests.support import hostile_files as hostile
from tests.support.hostile_files import MEGABYTE, pdf_of_a_box
from tests.support.soak import SOAK

MEMORY_LIMIT: Final = 500 * MEGABYTE

FILES: Final[dict[str, Callable[[], bytes]]] = {
    "narrow.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 0.0000001 800]"),
    "high.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 1 14400000]"),
    "wide.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 14400000 1]"),
    "far-crop.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 595 842] /CropBox [1000 1000 1100 1100]"),
    "flat-crop.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 595 842] /CropBox [9 9 9 9]"),
    "no-box.pdf": partial(pdf_of_a_box, b""),
    "negative.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 -595 -842] /Rotate 270"),
    "endless.pdf": partial(pdf_of_a_box, b"/MediaBox [-1e308 -1e308 1e308 1e308]"),
    "unit.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 14400 14400] /UserUnit 75000 /Rotate 90"),
    "dot.pdf": partial(pdf_of_a_box, b"/MediaBox [0 0 1 1]"),
    "form.pdf": hostile.pdf_whose_form_draws_itself,
    "forms.pdf": hostile.pdf_of_nested_forms,
    "loop.pdf": hostile.pdf_whose_pages_contain_themselves,
    "pages.pdf": hostile.pdf_of_many_empty_pages,
    "text.pdf": hostile.pdf_of_endless_text,
    "curves.pdf": hostile.pdf_of_many_curves,
    "cell.xlsx": hostile.sheet_with_the_last_cell,
    "gigantic.xlsx": hostile.gigantic_sheet,
    "laughs.xlsx": hostile.laughing_xlsx,
    "laughs.docx": hostile.laughing_docx,
    "declared.docx": hostile.bomb_that_is_not_one,
    "deep.html": hostile.deep_html,
    "deep.md": lambda: b"> " * 1_000_000 + b"heron",
    "quotes.csv": lambda: b'"' * 2_000_000,
    "binary.txt": lambda: bytes(1_000_000),
}

SHOWN: Final = (
    [*FILES]
    if SOAK
    else ["narrow.pdf", "high.pdf", "far-crop.pdf", "endless.pdf", "form.pdf", "cell.xlsx", "laughs.docx"]
)
"""One for each kind of harm: a reader's limits have tests of their own."""


@pytest.fixture(autouse=True)
def small_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[WarmProcess]:
    """A process that has little memory."""
    process = WarmProcess(viewing.__name__, [str(MEMORY_LIMIT)])
    monkeypatch.setattr(view, "viewing_process", lambda: process)
    viewer.viewer.cache_clear()
    yield process
    viewer.viewer.cache_clear()
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_a_hostile_file_is_shown_or_the_error_says_why(show: Show, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr(view, "MAX_SECONDS", 2.0)
        status, answer = show(name, FILES[name](), texts=["heron"])
    afterwards, harmless = show("harmless.txt", b"The heron stands in shallow water.")

    assert status in (200, 400), answer
    if status == 400:
        assert error_of((status, answer)) == (400, "InvalidRequest")
        assert f"'{name}' cannot be shown: " in answer["error"]["message"]
        assert answer["error"]["message"].endswith(".")
    elif answer["pages"]:
        assert answer["width"] * answer["height"] < 5_000_000
        assert max(answer["width"], answer["height"]) <= 10_000
    assert (afterwards, harmless["text"]) == (200, "The heron stands in shallow water.")


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in SHOWN if each.endswith(".pdf")])
def test_a_part_of_a_hostile_page_is_a_small_picture_or_none(
    show: Show, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_SECONDS", 2.0)

    status, answer = show(name, FILES[name](), texts=["heron"], region=True)

    if status == 400:
        assert f"'{name}' cannot be shown: " in answer["error"]["message"]
    elif answer["image"] is None:
        assert answer["unmarked"] == [0]
    else:
        assert answer["width"] * answer["height"] <= 1.05 * MAX_PART_PIXELS
        assert len(base64.b64decode(answer["image"])) <= MAX_PART_BYTES
        assert answer["marks"]


def test_a_file_is_read_by_a_new_process_if_others_took_the_memory(
    show: Show, monkeypatch: pytest.MonkeyPatch, small_process: WarmProcess
) -> None:
    call, ends = small_process.call, iter([ProcessEnded(97, 5)])

    def ending_once(*given: Any) -> bytes:
        for end in ends:
            small_process.close()
            raise end
        return call(*given)

    show("a.txt", b"First.")
    monkeypatch.setattr(small_process, "call", ending_once)

    assert show("b.txt", b"Second.")[1]["text"] == "Second."


def test_a_page_outside_of_its_paper_says_what_to_do(show: Show) -> None:
    _, answer = show("far-crop.pdf", FILES["far-crop.pdf"]())

    assert "its crop box is outside of its media box" in answer["error"]["message"]
    assert "Print the file to a new PDF file" in answer["error"]["message"]


def test_a_document_that_could_not_be_indexed_is_refused_with_its_reason(show: Show, aws: Aws) -> None:
    reason = "Reading the .txt file took too much memory: split it, or save it with less in it."
    aws.record("failed.txt", Status.FAILED, aws.put("failed.txt"), reason=reason)

    with aws.s3_out_of_reach("GetObject"):
        answer = show("failed.txt")

    assert error_of(answer) == (400, "InvalidRequest")
    assert answer[1]["error"]["message"] == f"'failed.txt' cannot be shown: it could not be indexed. {reason}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS bounds no address space")
def test_the_process_never_takes_more_memory_than_it_may(tmp_path: Path) -> None:
    # A process of its own: the peak of this one's children is that of every test before.
    names = ["narrow.pdf", "form.pdf", "cell.xlsx"]
    for name in names:
        (tmp_path / name).write_bytes(FILES[name]())
    program = f"""
import json, pathlib, resource, sys
from ragstack_common.reading import viewing
from ragstack_common.reading.pictures import MAX_PART_BYTES, MAX_PART_PIXELS
from ragstack_common.reading.warm_process import ProcessEnded, WarmProcess
process = WarmProcess(viewing.__name__, ["{MEMORY_LIMIT}"])
for path in map(pathlib.Path, sys.argv[1:]):
    head = json.dumps({{"name": path.name, "format": path.suffix[1:]}}).encode()
    try:
        process.call(head + b"\\n" + path.read_bytes(), 5)
    except (ProcessEnded, TimeoutError):
        pass
process.close()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""
    (tmp_path / "run.py").write_text(program)

    ended = subprocess.run(
        [sys.executable, tmp_path / "run.py", *(tmp_path / name for name in names)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert int(ended.stdout) < MEMORY_LIMIT
