"""Tesseract, with the models that are installed."""

import re

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont

from ragstack_common.reading.ocr.layout import recognized_page
from ragstack_common.reading.ocr.recognizer import Recognizer
from ragstack_common.reading.ocr.tesseract import installed_models, measured_skew
from ragstack_common.reading.ocr.words import RecognizedPage
from tests.support.scans import PARAGRAPH, scan
from tests.support.soak import part

SCAN = scan(((100, 100), PARAGRAPH), size=(1000, 400))
RUSSIAN = (
    "Настоящий договор может быть",
    "расторгнут одной из сторон",
    "через три месяца.",
    "Плата вносится ежемесячно.",
)


def recognized(program: Recognizer, image: Image.Image, language: str | None = None) -> RecognizedPage:
    found = program.recognize(image, language)
    return recognized_page(1, found.lines, image.size, found.engine)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def needs(model: str) -> None:
    if model not in installed_models():
        pytest.skip(f"tesseract has no model {model}: apt install tesseract-ocr-{model}")


@pytest.mark.parametrize("degrees", part([90, 180, 270, -8, 0, 4], 3))
def test_a_page_has_its_text_however_it_is_turned(program: Recognizer, degrees: int) -> None:
    needs("eng")
    turned = SCAN.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor="white")

    page = recognized(program, turned)

    assert words(page.text)[:8] == words(" ".join(PARAGRAPH))[:8]
    grey = turned.convert("L")
    for word in page.words:
        left, top, width, height = word.box
        place = (left * grey.width, top * grey.height, (left + width) * grey.width, (top + height) * grey.height)
        first, second, third, fourth = (round(each) for each in place)
        assert min(grey.crop((first, second, third, fourth)).tobytes()) < 100, word


@pytest.mark.parametrize("language", [None, "ru", "en"])
def test_another_script_is_recognized_whether_its_language_is_known_or_not(
    program: Recognizer, language: str | None
) -> None:
    needs("rus")
    image = Image.new("RGB", (900, 400), "white")
    try:
        font = ImageFont.truetype("DejaVuSans.ttf", 40)
    except OSError:
        pytest.skip("no font with Cyrillic letters is installed: apt install fonts-dejavu-core")
    for number, line in enumerate(RUSSIAN):
        ImageDraw.Draw(image).text((60, 60 + 60 * number), line, "black", font)

    page = recognized(program, image, language)

    assert words(page.text) == words(" ".join(RUSSIAN))


def test_a_noisy_page_is_read(program: Recognizer) -> None:
    needs("eng")
    noise = Image.effect_noise(SCAN.size, 90).convert("RGB")

    page = recognized(program, ImageChops.add(SCAN, noise, 1, -128))

    assert words(page.text)[:8] == words(" ".join(PARAGRAPH))[:8]


def test_languages_without_a_model_are_not_known(program: Recognizer) -> None:
    assert not program.knows("xx")


@pytest.mark.parametrize("degrees", [-10, -6.5, -1, 0, 2, 5.5, 10])
def test_the_skew_of_lines_is_measured(degrees: float) -> None:
    turned = scan(((100, 100), PARAGRAPH), size=(1000, 700)).rotate(degrees, fillcolor="white")

    assert measured_skew(turned) == pytest.approx(degrees, abs=0.5)
