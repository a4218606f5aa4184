"""The engines that are installed, with their models loaded once."""

from functools import cache

import pytest
from PIL import Image

from ragstack_common.reading.ocr import rapidocr, tesseract
from ragstack_common.reading.ocr.engines import recognizer
from ragstack_common.reading.ocr.recognizer import Recognition, Recognizer


class _Remembering:
    """Recognizes each picture once: a page takes seconds, and several tests look at the same one."""

    def __init__(self, engine: Recognizer) -> None:
        self._engine = engine
        self._found: dict[tuple[tuple[int, int], bytes], Recognition] = {}

    def knows(self, language: str) -> bool:
        return self._engine.knows(language)

    def recognize(self, image: Image.Image, language: str | None = None) -> Recognition:
        key = image.size, image.tobytes()
        if key not in self._found:
            self._found[key] = self._engine.recognize(image, language)
        return self._found[key]


@cache
def _rapidocr() -> Recognizer:
    found = recognizer("rapidocr")
    assert found is not None
    return _Remembering(found)


@pytest.fixture
def engine() -> Recognizer:
    """RapidOCR."""
    if not rapidocr.is_installed():
        pytest.skip("RapidOCR is not installed: pip install 'ragstack-kb[ocr]'")
    return _rapidocr()


@pytest.fixture
def program() -> Recognizer:
    """Tesseract."""
    if not tesseract.is_installed():
        pytest.skip("tesseract is not installed: apt install tesseract-ocr")
    return tesseract.Tesseract()
