"""Recognize text with the program ``tesseract``, which has a model for almost each language.

It runs apart, reads a picture that was decoded here, and gets no file names and no variables but its own.
"""

# ruff: noqa: SIM905 - a table of names

import csv
import math
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from io import BytesIO
from itertools import groupby
from shutil import which
from statistics import pvariance
from typing import TYPE_CHECKING, Final, NamedTuple

from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Point, Quad
from ragstack_common.reading.ocr.recognizer import Recognition
from ragstack_common.text.words import detect_language

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

ENGINE: Final = "tesseract"

CERTAIN: Final = 0.75
"""Mean confidence of a page above which its model and direction are not doubted."""

MAX_SECONDS: Final = 120.0
"""Time for one page."""

_OF_TAG: Final = dict(
    entry.split("=")
    for entry in (
        "af=afr ar=ara az=aze be=bel bg=bul bn=ben bs=bos ca=cat cs=ces cy=cym da=dan de=deu el=ell en=eng eo=epo"
        " es=spa et=est eu=eus fa=fas fi=fin fr=fra ga=gle gl=glg gu=guj he=heb hi=hin hr=hrv hu=hun hy=hye id=ind"
        " is=isl it=ita ja=jpn ka=kat kk=kaz km=khm kn=kan ko=kor la=lat lo=lao lt=lit lv=lav mk=mkd ml=mal mn=mon"
        " mr=mar ms=msa my=mya ne=nep nl=nld nb=nor nn=nor no=nor pa=pan pl=pol ps=pus pt=por ro=ron ru=rus sa=san"
        " sd=snd si=sin sk=slk sl=slv sq=sqi sr=srp sv=swe sw=swa ta=tam te=tel tg=tgk th=tha ti=tir tl=tgl tr=tur"
        " ug=uig uk=ukr ur=urd uz=uzb vi=vie yi=yid zh=chi_sim"
    ).split()
)
"""Names of Tesseract's models by the tag of the language. Source: tesseract(1), languages."""

_OF_SCRIPT: Final[Mapping[str, Sequence[str]]] = {
    "Arabic": ("ara", "fas", "urd"),
    "Armenian": ("hye",),
    "Bengali": ("ben",),
    "Cyrillic": ("rus", "ukr", "bul", "srp"),
    "Devanagari": ("hin", "mar", "nep"),
    "Georgian": ("kat",),
    "Greek": ("ell",),
    "Gujarati": ("guj",),
    "Gurmukhi": ("pan",),
    "Han": ("chi_sim", "chi_tra"),
    "Hangul": ("kor",),
    "Hebrew": ("heb",),
    "Japanese": ("jpn",),
    "Kannada": ("kan",),
    "Khmer": ("khm",),
    "Korean": ("kor",),
    "Lao": ("lao",),
    "Malayalam": ("mal",),
    "Myanmar": ("mya",),
    "Sinhala": ("sin",),
    "Tamil": ("tam",),
    "Telugu": ("tel",),
    "Thai": ("tha",),
}
"""Models for the scripts that Tesseract tells apart, except Latin, the most used first. One model is used, because two
take twice the time and mix their letters."""

_ENGLISH: Final = "eng"
_WORD_LEVEL: Final = "5"
_ROTATE: Final = re.compile(r"^Rotate: (\d+)$", re.MULTILINE)
_SCRIPT: Final = re.compile(r"^Script: (\w+)$", re.MULTILINE)
_FEW_CHARACTERS: Final = "min_characters_to_try=15"
"""The default of 50 leaves out pages of one paragraph."""

MAX_SKEW: Final = 10.0
_SKEW_STEP: Final = 0.5
_SKEW_SIDE: Final = 600
"""Pixels of the picture in which the skew is measured: lines of text are still apart."""

_LEAST_SKEW: Final = 0.3
"""Degrees that Tesseract itself corrects."""


def is_installed() -> bool:
    """Whether the program is there."""
    return which("tesseract") is not None


@cache
def installed_models() -> frozenset[str]:
    """Return the names of the models that the program has."""
    listed = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=False, timeout=20)  # noqa: S607
    return frozenset(listed.stdout.split("\n")[1:])


class _Orientation(NamedTuple):
    """How a page lies.

    Attributes:
        clockwise: Degrees by which it is to be turned.
        script: Tesseract's name of its script; None if it is not known.
    """

    clockwise: int = 0
    script: str | None = None


class Tesseract:
    """Tesseract with the installed model for a language or script."""

    def knows(self, language: str) -> bool:
        """Whether the model of a language is installed."""
        return _OF_TAG.get(language) in installed_models()

    def recognize(self, image: "PillowImage", language: str | None = None) -> Recognition:
        """Find the lines of a picture with the model of its language, or else of its script."""
        from PIL import ImageFilter  # noqa: PLC0415 - images are opened by few processes

        lines = _best_lines(image, language)
        if _certainty(lines) < CERTAIN:
            # Noise hides all text from it.
            lines = max(lines, _best_lines(image.filter(ImageFilter.GaussianBlur(1)), language), key=_certainty)
        return Recognition(ENGINE, lines)


def _best_lines(image: "PillowImage", language: str | None) -> list[FoundLine]:
    model = _OF_TAG.get(language or "")
    if model in installed_models():
        lines = _lines(image, model, 0)
        if _certainty(lines) >= CERTAIN:
            return lines
    return _with_any_model(image)


def _with_any_model(image: "PillowImage") -> list[FoundLine]:
    """Find the lines of a picture in an unknown language."""
    found = _orientation(image)
    of_script = next((each for each in _OF_SCRIPT.get(found.script or "", ()) if each in installed_models()), None)
    lines = [] if of_script is None else _lines(image, of_script, found.clockwise)
    # Short texts in Latin letters are often taken for those of another script.
    if _certainty(lines) < CERTAIN and _ENGLISH in installed_models():
        in_latin = _lines(image, _ENGLISH, found.clockwise)
        if _certainty(in_latin) > _certainty(lines):
            text = " ".join(word.text for line in in_latin for word in line.words)
            own = _OF_TAG.get(detect_language(text), _ENGLISH)
            lines = _lines(image, own, found.clockwise) if own in installed_models() - {_ENGLISH} else in_latin
    return lines


def _certainty(lines: Sequence[FoundLine]) -> float:
    """Return the mean confidence of lines, weighted by characters; 0 without lines."""
    lengths = [sum(len(word.text) for word in line.words) for line in lines]
    return sum(line.confidence * length for line, length in zip(lines, lengths, strict=True)) / max(1, sum(lengths))


def _orientation(image: "PillowImage") -> _Orientation:
    told = _run(image, "--psm", "0", "-c", _FEW_CHARACTERS)
    rotate, script = _ROTATE.search(told), _SCRIPT.search(told)
    return _Orientation(int(rotate[1]), script[1]) if rotate and script else _Orientation()


def _lines(image: "PillowImage", model: str, clockwise: int) -> list[FoundLine]:
    """Find the lines of a picture that is turned first; their places are those in the picture before."""
    from PIL import Image  # noqa: PLC0415 - images are opened by few processes

    turned = image.rotate(-clockwise, expand=True) if clockwise else image
    skew = measured_skew(turned)
    angle = clockwise + (skew if abs(skew) > _LEAST_SKEW else 0.0)
    straight = image.rotate(-angle, Image.Resampling.BICUBIC, expand=True, fillcolor="white") if angle else image
    back = _back(image.size, straight.size, angle)
    written = _run(straight, "-l", model, "--psm", "3", "tsv")
    rows = [
        row
        for row in csv.DictReader(written.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
        if row["level"] == _WORD_LEVEL and row["text"] and row["text"].strip()
    ]
    lines = groupby(rows, key=lambda row: (row["block_num"], row["par_num"], row["line_num"]))
    return [_line([*of_line], back) for _, of_line in lines]


def _line(rows: Sequence[Mapping[str, str]], back: Callable[[float, float], Point]) -> FoundLine:
    boxes = [[float(row[name]) for name in ("left", "top", "width", "height")] for row in rows]
    quads = [Quad.upright(left, top, left + width, top + height) for left, top, width, height in boxes]
    found = [
        FoundWord(row["text"].strip(), quad.moved(back), float(row["conf"]) / 100)
        for row, quad in zip(rows, quads, strict=True)
    ]
    across = [x for quad in quads for x, _ in quad]
    down = [y for quad in quads for _, y in quad]
    corners = Quad.upright(min(across), min(down), max(across), max(down)).moved(back)
    letters = sum(len(word.text) for word in found)
    return FoundLine(tuple(found), corners, sum(word.confidence * len(word.text) for word in found) / letters)


def _back(size: tuple[int, int], turned: tuple[int, int], clockwise: float) -> Callable[[float, float], Point]:
    """Return the map from a turned picture to the one before; both have their middle in common."""
    sine, cosine = math.sin(math.radians(clockwise)), math.cos(math.radians(clockwise))

    def back(x: float, y: float) -> Point:
        across, down = x - turned[0] / 2, y - turned[1] / 2
        return size[0] / 2 + across * cosine + down * sine, size[1] / 2 - across * sine + down * cosine

    return back


def measured_skew(image: "PillowImage") -> float:
    """Return by how many degrees a picture is to be turned clockwise so that its lines lie level.

    Rows of pixels differ most if lines of text and the spaces between them are level.
    """
    from PIL import Image  # noqa: PLC0415 - as above

    small = image.convert("L")
    small.thumbnail((_SKEW_SIDE, _SKEW_SIDE))

    def difference(angle: float) -> float:
        rows = small.rotate(-angle, Image.Resampling.BILINEAR, fillcolor=255).resize(
            (1, small.height), Image.Resampling.BOX
        )
        return pvariance(rows.tobytes())

    steps = int(MAX_SKEW / _SKEW_STEP)
    return max((step * _SKEW_STEP for step in sorted(range(-steps, steps + 1), key=abs)), key=difference)


def _run(image: "PillowImage", *arguments: str) -> str:
    """Run the program on a picture, and return what it writes; empty if it fails."""
    written = BytesIO()
    image.convert("L").save(written, "PNG", compress_level=1)
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX") if name in os.environ}
    try:
        ended = subprocess.run(  # noqa: S603 - arguments of our own
            ["tesseract", "stdin", "stdout", *arguments],  # noqa: S607
            input=written.getvalue(),
            capture_output=True,
            env={**kept, "OMP_THREAD_LIMIT": "1"},
            check=False,
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout.decode("utf-8", "replace")
