"""Image files and PDF files, read with RapidOCR."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from ragstack_common.reading import formats
from ragstack_common.reading.census.counting import count
from ragstack_common.reading.conversion import ReadText, convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ocr.engines import Setting, recognizer
from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Quad
from ragstack_common.reading.ocr.pages import PagePicture, PageText, composed, pages, read_with_recognition
from ragstack_common.reading.ocr.recognizer import FirstLegible, Recognition, Recognizer
from ragstack_common.reading.viewing import OpenDocuments
from tests.support import pdf_files
from tests.support.scans import NOTICE, PARAGRAPH, saved, scan, scanned_pdf
from tests.support.soak import part

SCAN = scan(((100, 100), PARAGRAPH), size=(1000, 400))
PAGE = scan(((100, 100), PARAGRAPH), size=(1000, 1414))
# Tests of this file are run by one worker, which loads the models once.
pytestmark = pytest.mark.xdist_group("ocr")
HEADING = "## Page 1 (read from an image)"
TYPED = pdf_files.text(*((700 - 14 * n, 12, b"(Typed line %d of a page with words enough)" % n) for n in range(4)))
MEMORY = 1280 * 1024**2


def read(data: bytes, file_format: str, engine: Recognizer | None, setting: Setting = "auto") -> ReadText:
    return read_with_recognition(data, file_format, engine, setting)


def darkest(picture: Image.Image, place: Sequence[float]) -> int:
    """The darkest shade within left, top, right and bottom of a grey picture."""
    left, top, right, bottom = (round(each) for each in place)
    return min(picture.crop((left, top, right, bottom)).tobytes())


def close(found: str, expected: Sequence[str]) -> bool:
    """Whether a text has nearly all words, in their order: engines take a dot for a comma now and then."""
    words, wanted = re.findall(r"\w+", found), re.findall(r"\w+", " ".join(expected))
    return len(words) == len(wanted) and sum(a == b for a, b in zip(words, wanted, strict=True)) >= 0.95 * len(wanted)


@pytest.mark.parametrize("file_format", part(formats.IMAGES, 2))
def test_images_are_read_with_a_heading_for_their_page(engine: Recognizer, file_format: str) -> None:
    pillow = {"jpg": "JPEG", "tiff": "TIFF"}.get(file_format, file_format.upper())

    found = read(saved(SCAN, pillow), file_format, engine)

    heading, _, text = found.text.partition("\n\n")
    assert heading == HEADING
    assert close(text, PARAGRAPH)
    (page,) = found.recognized
    assert (page.number, page.engine) == (1, "rapidocr")
    assert page.confidence > 0.9
    assert text == page.text


@pytest.mark.slow
@pytest.mark.parametrize("degrees", part([90, 180, 270, -8, 3, 95], 3))
def test_a_turned_page_has_the_same_text(engine: Recognizer, degrees: int) -> None:
    turned = SCAN.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor="white")

    (page,) = read(saved(turned, "PNG"), "png", engine).recognized

    assert close(page.text, PARAGRAPH)
    for word in page.words:
        assert 0 <= word.box.left < word.box.left + word.box.width <= 1
        assert 0 <= word.box.top < word.box.top + word.box.height <= 1


@pytest.mark.slow
def test_two_columns_are_not_read_across(engine: Recognizer) -> None:
    page = scan(((60, 100), PARAGRAPH), ((860, 100), NOTICE), size=(1500, 500))

    assert close(read(saved(page, "PNG"), "png", engine).recognized[0].text, [*PARAGRAPH, *NOTICE])


def test_words_are_where_the_picture_is_dark(engine: Recognizer) -> None:
    (page,) = read(saved(SCAN, "PNG"), "png", engine).recognized

    grey = SCAN.convert("L")
    for word in page.words:
        left, top, width, height = word.box
        place = (left * grey.width, top * grey.height, (left + width) * grey.width, (top + height) * grey.height)
        assert darkest(grey, place) < 100, word


def test_small_screenshots_are_read(engine: Recognizer) -> None:
    small = scan(((20, 20), NOTICE), size=(400, 90), points=14)

    assert close(read(saved(small, "PNG"), "png", engine).recognized[0].text, NOTICE)


def test_an_image_without_text_is_refused(engine: Recognizer) -> None:
    with pytest.raises(UnreadableDocument, match=r"No text was recognized in the \.png file"):
        read(saved(Image.new("RGB", (300, 300), "white"), "PNG"), "png", engine)


def test_of_a_pdf_only_pages_without_text_are_recognized(engine: Recognizer) -> None:
    found = read(scanned_pdf(TYPED, PAGE, TYPED, b""), "pdf", engine)

    assert re.findall("## Page.*", found.text) == ["## Page 1", "## Page 2 (read from an image)", "## Page 3"]
    assert found.text.count("Typed line 2 of a page") == 2
    (page,) = found.recognized
    assert page.number == 2
    assert close(page.text, PARAGRAPH)


def test_a_scan_with_a_line_of_the_scanner_is_recognized(engine: Recognizer) -> None:
    data = scanned_pdf(PAGE)
    stamped = data.replace(b"595 0 0 842 0 0 cm /I Do", b"BT /F 8 Tf (Scan) Tj ET 595 0 0 842 0 0 cm /I Do")

    assert [page.number for page in read(stamped, "pdf", engine).recognized] == [1]


def test_letters_that_are_drawn_are_recognized(engine: Recognizer) -> None:
    """Some programs draw letters as shapes; here, squares make an L."""
    shape = b"200 500 40 200 re f 200 500 140 40 re f"

    assert [page.number for page in read(scanned_pdf(TYPED, shape), "pdf", engine).recognized] == [2]


def test_a_pdf_with_text_is_read_as_without_recognition(engine: Recognizer) -> None:
    data = scanned_pdf(TYPED, TYPED)

    assert read(data, "pdf", engine) == convert(data, "pdf")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("auto", r"pip install 'ragstack-kb\[ocr\]'"),
        ("rapidocr", r"pip install 'ragstack-kb\[ocr\]'"),
        ("tesseract", "apt install tesseract-ocr"),
        ("off", "switched off"),
    ],
)
def test_without_an_engine_the_reason_says_what_to_install(setting: Setting, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        read(saved(SCAN, "PNG"), "png", None, setting)


def test_without_an_engine_a_pdf_keeps_the_pages_with_text() -> None:
    found = read(scanned_pdf(TYPED, PAGE), "pdf", None)

    assert "Typed line 2" in found.text
    assert not found.recognized


def test_no_engine_is_used_if_it_is_off() -> None:
    assert recognizer("off") is None
    assert recognizer("textract") is None


def test_loading_and_recognizing_need_no_network() -> None:
    """In a process of its own, which loads everything anew."""
    program = """
import sys
from PIL import Image
from ragstack_common.reading.ocr.engines import recognizer
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"):
        raise SystemExit(f"{event} {arguments}")
    if event == "open" and str(arguments[1])[:1] in ("w", "a", "x"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
engine = recognizer("rapidocr")
print("none" if engine is None else len(engine.recognize(Image.new("RGB", (99, 99), "white")).lines))
"""
    ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)

    assert ended.stdout.strip() in ("0", "none"), ended.stderr


class Fixed:
    """Finds one line, however the picture looks."""

    def __init__(self, text: str, confidence: float, knows: Sequence[str] = ("en",)) -> None:
        self.text, self.confidence, self._knows = text, confidence, knows
        self.languages: list[str | None] = []

    def knows(self, language: str) -> bool:
        return language in self._knows

    def recognize(self, image: Image.Image, language: str | None = None) -> Recognition:
        self.languages.append(language)
        corners = Quad.upright(0, 0, image.width, 20)
        words = tuple(FoundWord(word, corners, self.confidence) for word in self.text.split())
        return Recognition(self.text[:9], [FoundLine(words, corners, self.confidence)])


def test_a_picture_that_one_engine_cannot_read_is_read_by_the_next() -> None:
    first, second, third = Fixed("first", 0.2), Fixed("second", 0.9), Fixed("third", 0.9)

    found = FirstLegible([first, second, third]).recognize(SCAN)

    assert found.engine == "second"
    assert not third.languages


def test_an_engine_that_finds_nothing_does_not_replace_one_that_reads_a_part() -> None:
    first = Fixed("part", 0.9)
    found = first.recognize(SCAN)
    unread = found.lines[0]._replace(confidence=0.1)
    first.recognize = lambda *_: found._replace(lines=[*found.lines, unread, unread])  # type: ignore[method-assign]
    nothing = Fixed("", 0.9)
    nothing.recognize = lambda *_: Recognition("nothing", [])  # type: ignore[method-assign]

    assert FirstLegible([first, nothing]).recognize(SCAN).engine == "part"


def test_an_engine_that_knows_the_language_is_asked_first() -> None:
    first, second = Fixed("first", 0.9), Fixed("second", 0.9, ["ru"])

    assert FirstLegible([first, second]).recognize(SCAN, "ru").engine == "second"
    assert FirstLegible([first, second]).recognize(SCAN, "de").engine == "first"


def test_a_page_keeps_its_text_if_recognition_finds_less() -> None:
    """Its script may have no model, for example."""
    data = scanned_pdf(PAGE).replace(
        b"595 0 0 842 0 0 cm /I Do", b"BT /F 8 Tf 9 9 Td (Two words) Tj ET 595 0 0 842 0 0 cm /I Do"
    )

    assert read(data, "pdf", Fixed("One", 0.9)).text == "Two words\f"
    assert len(read(data, "pdf", Fixed("Now there are more", 0.9)).recognized) == 1


def test_the_language_is_that_of_the_pages_with_text() -> None:
    german = " ".join(["(Der Vertrag ist nicht mit der Frist, die wir haben)"] * 1).encode()
    typed = pdf_files.text(*((700 - 14 * n, 12, german) for n in range(4)))
    engine = Fixed("Wort", 0.9)

    read(scanned_pdf(PAGE, typed), "pdf", engine)

    assert engine.languages == ["de"]


def test_the_language_is_that_of_the_pages_before() -> None:
    engine = Fixed("Le contrat est dans la langue que nous avons " * 5, 0.9)

    read(scanned_pdf(PAGE, PAGE), "pdf", engine)

    assert engine.languages == [None, "fr"]


def test_another_process_can_recognize_the_pages() -> None:
    drawn = [*pages(scanned_pdf(TYPED, PAGE), "pdf")]
    typed, picture = drawn
    assert isinstance(typed, PageText)
    assert isinstance(picture, PagePicture)
    assert Image.open(BytesIO(picture.encoded())).size == picture.image.size
    page = read(saved(SCAN, "PNG"), "png", Fixed("Words of a service", 0.9)).recognized[0]

    found = composed("pdf", [page._replace(number=2), typed])

    assert found.text.endswith("## Page 2 (read from an image)\n\nWords of a service")


@pytest.mark.slow
def test_a_large_picture_is_sent_as_jpeg() -> None:
    noise = Image.merge("RGB", [Image.effect_noise((2500, 2500), 90) for _ in "RGB"])

    assert Image.open(BytesIO(PagePicture(1, noise).encoded())).format == "JPEG"


@pytest.mark.slow
def test_markup_in_a_picture_is_text(engine: Recognizer) -> None:
    page = scan(((60, 60), ["# 1 <b>Fees</b>", "are due monthly"]))

    text = read(saved(page, "PNG"), "png", engine).text.removeprefix(HEADING)

    assert not re.search("^# ", text, re.MULTILINE)
    assert "<b>" not in text.replace(r"\<", "")


def test_recognized_pages_count_as_read(engine: Recognizer) -> None:
    data = scanned_pdf(TYPED, PAGE)
    found = read(data, "pdf", engine)

    without, census = count(data, "pdf"), count(data, "pdf", recognized=found.recognized)

    assert "needs text recognition" in without.parts[1].unread
    assert [part.unread for part in census.parts] == ["", ""]
    assert close(" ".join(census.parts[1].texts), PARAGRAPH)
    assert census.parts[0].confidence is None
    assert census.parts[1].confidence == pytest.approx(found.recognized[0].confidence, abs=0.001)


def test_pages_of_images_count_as_read_if_they_were_recognized(engine: Recognizer) -> None:
    data = saved(SCAN, "TIFF", save_all=True, append_images=[SCAN])
    found = read(data, "tiff", engine)

    census = count(data, "tiff", recognized=found.recognized[:1])

    assert [part.name for part in census.parts] == ["page 1", "page 2"]
    assert [bool(part.unread) for part in census.parts] == [False, True]


def test_a_page_of_which_much_is_illegible_is_not_read() -> None:
    found = read(saved(SCAN, "PNG"), "png", Fixed("Words", 0.9)).recognized[0]

    (part,) = count(saved(SCAN, "PNG"), "png", recognized=[found._replace(legible=0.3)]).parts

    assert part.unread == "a picture, of whose lines 70% could not be recognized"


def shown(data: bytes, file_format: str, found: ReadText, **wish: Any) -> dict[str, Any]:
    head = {"name": "a", "format": file_format, "recognized": [page.to_json() for page in found.recognized], **wish}
    answer: dict[str, Any] = json.loads(OpenDocuments(MEMORY).answer(json.dumps(head).encode() + b"\n" + data))
    return answer["shown"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("wish", [{}, {"region": True}])
def test_quoted_words_are_marked_on_the_picture(engine: Recognizer, wish: dict[str, bool]) -> None:
    data = saved(SCAN, "TIFF", save_all=True, append_images=[scan(((100, 300), NOTICE))])
    found = read(data, "tiff", engine)

    view = shown(data, "tiff", found, texts=["receipt of the form"], **wish)

    assert (view["pages"], view["page"]) == (2, 2)
    (mark,) = view["marks"]
    assert view["text"][mark["start"] : mark["end"]] == "receipt of the form"
    (box,) = mark["boxes"]
    picture = Image.open(BytesIO(base64.b64decode(view["image"]))).convert("L")
    place = (box["left"], box["top"], box["left"] + box["width"], box["top"] + box["height"])
    assert darkest(picture, [a * b for a, b in zip(place, picture.size * 2, strict=True)]) < 100


def test_quoted_words_are_marked_on_recognized_and_other_pages_of_a_pdf(engine: Recognizer) -> None:
    data = scanned_pdf(TYPED, PAGE)
    view = shown(data, "pdf", read(data, "pdf", engine), texts=["Typed line 2", "three months to the end\nof a year"])

    assert [(mark["page"], mark["marked"], len(mark["boxes"])) for mark in view["marks"]] == [
        (1, True, 1),
        (2, True, 2),
    ]


def test_an_image_without_recognition_is_shown_without_text() -> None:
    view = shown(saved(SCAN, "PNG"), "png", ReadText(""))

    assert (view["pages"], view["text"], view["width"]) == (1, "", 1000)
