"""The function that shows documents: the page or the text, the marks, and what it refuses."""

import base64
import subprocess
import sys
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from ragstack_common.reading.marking import MAX_SHOWN_CHARACTERS
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.viewing import OpenDocuments
from ragstack_common.reading.warm_process import ProcessBusy
from ragstack_common.registry.records import Status
from ragstack_common.services import view
from tests.ragstack_common.services.conftest import Aws, Show, error_of
from tests.support.pdf_files import mapped, pages, protected, text

FIRST = text((700, 12, b"(Travel costs are paid)"), (686, 12, b"(within thirty days of the)"))
SECOND = text(
    (780, 12, b"(receipt of the reimburse-)"), (766, 12, b"(ment form. Ask early.)"), (600, 12, b"(Ask early.)")
)
REPORT = pages(FIRST, SECOND, b"")


def test_a_page_is_shown_with_its_marks(show: Show) -> None:
    status, found = show("a.pdf", REPORT, texts=["costs are paid within thirty"])

    assert status == 200
    picture = Image.open(BytesIO(base64.b64decode(found["image"])))
    assert (found["format"], found["pages"], found["page"], found["image_type"]) == ("pdf", 3, 1, "image/png")
    assert (picture.format, *picture.size) == ("PNG", found["width"], found["height"])
    (mark,) = found["marks"]
    assert found["text"][mark["start"] : mark["end"]] == "costs are paid\nwithin thirty"
    assert (mark["index"], mark["page"], mark["marked"], len(mark["boxes"])) == (0, 1, True, 2)
    for box in mark["boxes"]:
        assert darkest(picture, box) < 100
    assert (found["unmarked"], found["mark_pages"], found["pages_without_text"]) == ([], [1], [3])


def darkest(picture: Image.Image, box: dict[str, float]) -> int:
    """The darkest shade in a part of a picture."""
    width, height = picture.size
    left, top = box["left"] * width, box["top"] * height
    part = picture.crop(
        (round(left), round(top), round(left + box["width"] * width), round(top + box["height"] * height))
    )
    shade = part.convert("L").getextrema()[0]
    assert isinstance(shade, int)
    return shade


def test_a_text_across_pages_is_marked_on_both(show: Show) -> None:
    _, found = show("a.pdf", REPORT, texts=["days of the receipt of the reimbursement form."])

    assert [(mark["index"], mark["page"], len(mark["boxes"])) for mark in found["marks"]] == [(0, 1, 1), (0, 2, 2)]
    assert (found["page"], found["mark_pages"]) == (1, [1, 2])


def test_the_passage_says_which_occurrence_is_meant(show: Show) -> None:
    _, alone = show("a.pdf", REPORT, texts=["Ask early."])
    _, first = show("a.pdf", texts=["Ask early."], passage="reimbursement form. Ask early.")
    _, second = show("a.pdf", texts=["Ask early."], passage="Ask early.\n\nAsk early.", starts=[12])

    assert (alone["marks"], alone["unmarked"]) == ([], [0])
    tops = [found["marks"][0]["boxes"][0]["top"] for found in (first, second)]
    assert tops == pytest.approx([0.08, 0.28], abs=0.02)
    assert (first["page"], second["page"]) == (2, 2)


def test_a_page_can_be_chosen(show: Show) -> None:
    _, found = show("a.pdf", REPORT, texts=["Travel costs"], page=2)

    assert found["text"].startswith("receipt of the reimbursement form.")
    assert (found["page"], found["mark_pages"]) == (2, [1])


def test_ligatures_and_characters_beyond_16_bits_are_marked(show: Show) -> None:
    data = mapped(text((700, 12, b"(oAce staC B desk)")), {"A": "ffi", "C": "\ufb00", "B": "😀"})

    _, found = show("a.pdf", data, texts=["office staff", "😀", "desk", "ice"])

    office, face, desk, _ = (mark["boxes"][0] for mark in found["marks"])
    assert found["text"] == "office staff 😀 desk"
    assert office["left"] + office["width"] < face["left"] < face["left"] + face["width"] < desk["left"]


class InThisProcess:
    """Shows documents where a test can change how they are read."""

    def __init__(self) -> None:
        self._documents = OpenDocuments(1 << 40)

    def start(self) -> None:
        """There is nothing to start."""

    def call(self, message: bytes, _: float) -> bytes:
        return self._documents.answer(message)


def test_waiting_for_other_documents_is_not_reported_as_slow(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(InThisProcess):
        def call(self, *_: Any) -> bytes:
            raise ProcessBusy

    monkeypatch.setattr(view, "viewing_process", Busy)

    answer = show("a.txt", b"Public.")

    assert error_of(answer) == (502, "ServiceUnavailable")
    assert "try again" in answer[1]["error"]["message"]


def test_only_the_process_that_reads_documents_imports_their_libraries() -> None:
    program = (
        "import sys; from ragstack_common.services import view; print('ragstack_common.reading.pdf' in sys.modules)"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "False"


def test_a_text_without_a_place_on_the_page_is_not_marked(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "viewing_process", InThisProcess)
    monkeypatch.setattr(PdfDocument, "boxes", lambda _, __, spans: [[] for _ in spans])

    _, found = show("a.pdf", REPORT, texts=["Travel costs", "not there"])

    (mark,) = found["marks"]
    assert (mark["index"], mark["page"], mark["marked"], mark["boxes"]) == (0, 1, False, [])
    assert (found["unmarked"], found["mark_pages"]) == ([0, 1], [])


def test_words_within_other_words_are_not_marked(show: Show) -> None:
    _, found = show(
        "a.txt", b"The rate is 15 percent or 3.5 percent. Later, 5 percent.", texts=["5 percent", "percents"]
    )

    (mark,) = found["marks"]
    assert mark["start"] == 46
    assert found["unmarked"] == [1]


@pytest.mark.parametrize(
    ("key", "data", "quoted"),
    [
        ("a.html", b"<h1>Leave</h1><p>You have <b>30</b> days\n of leave.</p>", "You have 30 days of leave."),
        ("a.md", b"# Leave\n\nYou have\r\n30 days.", "You have\n30 days."),
        ("a.csv", b"name,days\nleave,30\n", "leave,30"),
    ],
)
def test_texts_without_pages_are_shown_as_text(show: Show, key: str, data: bytes, quoted: str) -> None:
    status, found = show(key, data, texts=[quoted])

    assert status == 200
    (mark,) = found["marks"]
    assert mark["marked"]
    assert found["text"][mark["start"] : mark["end"]].split() == quoted.split()
    assert (found["pages"], found["image"], found["mark_pages"], mark["boxes"]) == (None, None, [], [])


def test_a_long_text_is_shown_around_the_mark(show: Show) -> None:
    long = "word " * MAX_SHOWN_CHARACTERS

    _, found = show("a.txt", (long + "Only here. " + long).encode(), texts=["Only here."])

    (mark,) = found["marks"]
    assert len(found["text"]) == MAX_SHOWN_CHARACTERS
    assert found["text"][mark["start"] : mark["end"]] == "Only here."
    assert found["text_start"] + mark["start"] == len(long)


@pytest.mark.parametrize(
    ("key", "data", "request_", "message"),
    [
        ("a.pdf", b"%PDF-1.7 nothing", {}, "is damaged or incomplete"),
        ("b.pdf", protected(b"heron"), {}, "protected by a password"),
        ("empty.txt", b"", {}, "The file is empty"),
        ("a.doc", b"\xd0\xcf\x11\xe0", {}, "is damaged or incomplete"),
        ("a.pdf", REPORT, {"page": 4}, "the document has 3 pages"),
        ("a.txt", b"Text.", {"page": 1}, "has no pages"),
        ("a.txt", b"Text.", {"texts": ["Text."], "starts": [0]}, "starts needs a passage"),
        ("a.txt", b"Text.", {"texts": ["x"] * 51}, "at most 50"),
        ("a.txt", b"Text.", {"texts": ["x" * 20_000] * 6}, "at most 100,000 are marked at once: send fewer"),
    ],
)
def test_what_cannot_be_shown_says_why(show: Show, key: str, data: bytes, request_: Any, message: str) -> None:
    answer = show(key, data, **request_)

    assert error_of(answer) == (400, "InvalidRequest")
    assert message in answer[1]["error"]["message"]


def test_a_file_that_is_too_large_is_not_read(show: Show, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWER_MAX_BYTES", "10")

    with aws.s3_out_of_reach("GetObject"):
        answer = show("a.txt", b"Eleven byte")

    assert error_of(answer) == (400, "InvalidRequest")
    assert "the file has 11 bytes; the maximum is 10" in answer[1]["error"]["message"]


def test_an_unknown_or_deleted_document_is_not_found(show: Show, aws: Aws) -> None:
    aws.record("deleted.txt", Status.DELETED)

    assert error_of(show("unknown.txt")) == error_of(show("deleted.txt")) == (404, "DocumentNotFound")


def test_a_version_without_a_label_is_not_shown(show: Show, aws: Aws) -> None:
    show("a.txt", b"Public.")
    view.viewing_process().close()
    aws.put("a.txt", "Secret.")

    assert error_of(show("a.txt")) == (502, "ServiceUnavailable")
