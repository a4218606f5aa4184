"""Which engine a setting chooses."""

from typing import Final, Literal

from ragstack_common.reading.ocr import rapidocr, tesseract
from ragstack_common.reading.ocr.recognizer import FirstLegible, Recognizer
from ragstack_common.settings.ingestion import Recognition

Setting = Literal["auto"] | Recognition

_INSTALL_RAPIDOCR: Final = "pip install 'ragstack-kb[ocr]'"
_INSTALL_TESSERACT: Final = "apt install tesseract-ocr"


def recognizer(setting: Setting = "auto") -> Recognizer | None:
    """Return the local engine that a setting chooses, with its models loaded; None if it is off or not installed.

    Textract is not a local engine: the process that reads files has neither a network nor credentials.
    """
    engines: list[Recognizer] = []
    if (setting == "auto" or "rapidocr" in setting) and rapidocr.is_installed():
        engines.append(rapidocr.RapidOcr())
    if (setting == "auto" or "tesseract" in setting) and tesseract.is_installed():
        engines.append(tesseract.Tesseract())
    return FirstLegible(engines) if engines else None


def how_to_install(setting: Setting) -> str:
    """Return what to do so that pictures are read, as the end of a sentence."""
    match setting:
        case "off":
            return "it is switched off"
        case "tesseract":
            return _INSTALL_TESSERACT
        case _:
            return _INSTALL_RAPIDOCR
