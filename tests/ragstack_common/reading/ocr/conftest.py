"""The engines that are installed, with their models loaded once."""

from functools import cache

import pytest

from ragstack_common.reading.ocr import rapidocr, tesseract
from ragstack_common.reading.ocr.engines import recognizer
from ragstack_common.reading.ocr.recognizer import Recognizer


@cache
def _rapidocr() -> Recognizer | None:
    return recognizer("rapidocr")


@pytest.fixture
def engine() -> Recognizer:
    """RapidOCR."""
    if not rapidocr.is_installed():
        pytest.skip("RapidOCR is not installed: pip install 'ragstack-kb[ocr]'")
    found = _rapidocr()
    assert found is not None
    return found


@pytest.fixture
def program() -> Recognizer:
    """Tesseract."""
    if not tesseract.is_installed():
        pytest.skip("tesseract is not installed: apt install tesseract-ocr")
    return tesseract.Tesseract()
