"""Measure how many characters text recognition gets wrong, and what time and memory it takes.

The scans are made here: paragraphs of ``ocr.json`` are drawn on a page in two sizes, with the fonts of
``apt install fonts-liberation fonts-noto-core fonts-noto-cjk``, and then damaged as scanners and copiers do:

- clean at 150, 200 and 300 dpi,
- noise, blur and the artefacts of a JPEG of low quality,
- a skew of 3 degrees and a page turned by a quarter,
- faint grey print on yellowish paper.

Each language has two paragraphs. The settings were chosen with the first one; ``--held-out`` measures the second one,
and gives the figures in docs/RESULTS.md.

A wrong character is one that must be inserted, deleted or replaced (Levenshtein distance). Both texts are normalized
first: NFKC, one form of quotation marks and dashes, and one space for each run of white space (none in scripts without
spaces). Upper and lower case differ. Seconds are processor time; a page uses two processors if they are free.

Engines: RapidOCR (``pip install 'ragstack-kb[ocr]'``) and Tesseract (``apt install tesseract-ocr`` with
``tesseract-ocr-LANGUAGE``); ``auto`` is what a stack uses. None of them is told the language.

Run: ``python benchmarks/ocr.py [--engine auto] [--language de] [--held-out] [--kinds clean-200,skew] [--points 5]
[--show]``.
"""

import argparse
import json
import multiprocessing
import re
import resource
import sys
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from parts.measuring import table
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont
from rich.console import Console

from ragstack_common.reading.ocr import images
from ragstack_common.reading.ocr.engines import Setting, how_to_install, recognizer
from ragstack_common.reading.ocr.layout import recognized_page
from ragstack_common.text.characters import DENSE_RANGES

TEXTS = Path(__file__).with_suffix(".json")
FONTS = Path("/usr/share/fonts")
INSTALL = "apt install fonts-liberation fonts-noto-core fonts-noto-cjk"
FILES = {
    "": ("truetype/liberation/LiberationSerif-Regular.ttf", 0),
    "ar": ("truetype/noto/NotoNaskhArabic-Regular.ttf", 0),
    "hi": ("truetype/noto/NotoSerifDevanagari-Regular.ttf", 0),
    "ja": ("opentype/noto/NotoSerifCJK-Regular.ttc", 0),
    "ko": ("opentype/noto/NotoSerifCJK-Regular.ttc", 1),
    "th": ("truetype/noto/NotoSerifThai-Regular.ttf", 0),
    "zh": ("opentype/noto/NotoSerifCJK-Regular.ttc", 2),
}
"""Font of each language and its place in the file; most have the first one."""

WIDTH, MARGIN = 8.27, 1.0
"""Width of a page and of its margins, in inches."""

PAPER = (246, 240, 220)
DENSE = re.compile(f"[{DENSE_RANGES}]")
MARKS = {
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\xab\xbb"), '"'),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a"), "'"),
    **dict.fromkeys(map(ord, "\u2013\u2014"), "-"),
}


class Figures(NamedTuple):
    """What recognition makes of a scan."""

    wrong: int
    characters: int
    seconds: float
    legible: float


class Measured(NamedTuple):
    """The figures of all scans of a text, and the most memory of the process, which also makes the scans."""

    figures: list[Figures]
    memory_bytes: int


def page(text: str, language: str, dpi: int, sizes: Sequence[float]) -> Image.Image:
    """Draw a paragraph in some sizes, in points, on an A4 page."""
    file, index = FILES.get(language, FILES[""])
    image = Image.new("RGB", (round(WIDTH * dpi), round(11.69 * dpi)), "white")
    draw = ImageDraw.Draw(image)
    top = MARGIN * dpi
    for points in sizes:
        font = ImageFont.truetype(FONTS / file, round(points * dpi / 72), index=index)
        for line in wrapped(text, (WIDTH - 2 * MARGIN) * dpi, font.getlength):
            left = (WIDTH - MARGIN) * dpi - font.getlength(line) if language == "ar" else MARGIN * dpi
            draw.text((left, top), line, "black", font)
            top += 1.5 * points * dpi / 72
        top += 3 * points * dpi / 72
    return image


def wrapped(text: str, width: float, length: Callable[[str], float]) -> list[str]:
    """Divide a text into lines, in scripts without spaces between any two characters that may be divided."""
    pieces = re.findall(rf"[{DENSE_RANGES}][\u0e31-\u0e4e]*|[^\s{DENSE_RANGES}]+\s*|\s", text)
    if any("\u0e00" <= each <= "\u0e7f" for each in text):  # a line of Thai ends at a space
        pieces = re.findall(r"\S+\s*", text)
    lines = [""]
    for piece in pieces:
        if lines[-1] and length((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


def noise(image: Image.Image) -> Image.Image:
    spots = Image.effect_noise(image.size, 60).convert("RGB")
    return ImageChops.add(image, spots, 1, -128)


def as_jpeg(image: Image.Image) -> Image.Image:
    written = BytesIO()
    image.save(written, "JPEG", quality=20)
    return Image.open(written).convert("RGB")


def faint(image: Image.Image) -> Image.Image:
    grey = image.point(lambda value: 110 + value * 145 // 255)
    return ImageChops.multiply(grey, Image.new("RGB", image.size, PAPER))


KINDS: dict[str, tuple[int, Callable[[Image.Image], Image.Image]]] = {
    "clean-150": (150, lambda image: image),
    "clean-200": (200, lambda image: image),
    "clean-300": (300, lambda image: image),
    "noise": (200, noise),
    "blur": (200, lambda image: image.filter(ImageFilter.GaussianBlur(1.5))),
    "jpeg": (150, as_jpeg),
    "skew": (200, lambda image: image.rotate(3, Image.Resampling.BICUBIC, expand=True, fillcolor="white")),
    "quarter": (200, lambda image: image.rotate(90, expand=True)),
    "faint": (200, faint),
}
"""Resolution and change of each kind of scan."""


def normalized(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).translate(MARKS)
    has_spaces = 2 * len(DENSE.findall(text)) < len(text)
    return re.sub(r"\s+", " " if has_spaces else "", text).strip()


def wrong_characters(found: str, expected: str) -> int:
    """Return the Levenshtein distance."""
    before = list(range(len(expected) + 1))
    for row, character in enumerate(found, 1):
        after = [row]
        for column, wanted in enumerate(expected, 1):
            after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (character != wanted)))
        before = after
    return before[-1]


def measured(
    setting: Setting, language: str, text: str, kinds: Sequence[str], sizes: Sequence[float], *, shows: bool
) -> Measured:
    """Recognize the scans of a text, in a process of its own."""
    engine = recognizer(setting)
    if engine is None:
        raise SystemExit(f"{setting} is not installed: {how_to_install(setting)}")
    figures = []
    for kind in kinds:
        dpi, change = KINDS[kind]
        image = images.enlarged(change(page(text, language, dpi, sizes)))
        began = processor_seconds()
        found = engine.recognize(image)
        recognized = recognized_page(1, found.lines, image.size, found.engine)
        seconds = processor_seconds() - began
        expected = normalized(" ".join([text] * len(sizes)))
        wrong = wrong_characters(normalized(recognized.text), expected)
        figures.append(Figures(wrong, len(expected), seconds, recognized.legible))
        if shows:
            print(f"{setting} {language} {kind}: {wrong} of {len(expected)}", recognized.text, sep="\n", flush=True)
    scale = 1 if sys.platform == "darwin" else 1024
    return Measured(figures, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)


def processor_seconds() -> float:
    """Return the time that this process and the programs that it started took of all processors."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=["auto", "rapidocr", "tesseract"], help="auto")
    parser.add_argument("--language", action="append", help="all of ocr.json")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of scans (all)")
    parser.add_argument("--points", default="9,12", help="sizes of the letters (9,12)")
    parser.add_argument("--held-out", action="store_true", help="measure the second paragraph of each language")
    parser.add_argument("--show", action="store_true", help="print what was recognized")
    chosen = parser.parse_args()
    if not all((FONTS / file).is_file() for file, _ in FILES.values()):
        raise SystemExit(f"Fonts are missing: {INSTALL}")
    texts = json.loads(TEXTS.read_text())
    kinds, sizes = chosen.kinds.split(","), [float(each) for each in chosen.points.split(",")]
    console = Console(width=None if sys.stdout.isatty() else 160)
    for setting in chosen.engine or ["auto"]:
        rows = []
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
            for language in chosen.language or texts:
                text = texts[language][chosen.held_out]
                found = processes.submit(measured, setting, language, text, kinds, sizes, shows=chosen.show).result()
                rows.append(row_of(language, found))
                print(*rows[-1], flush=True)
        caption = f"{'Held-out' if chosen.held_out else 'First'} paragraphs, in characters of 1,000 that are wrong"
        columns = [setting, *kinds, "legible", "processor s", "MB"]
        console.print(table("Text recognition", columns, rows, caption))


def row_of(language: str, found: Measured) -> list[str]:
    wrong = [f"{1000 * each.wrong / each.characters:.1f}" for each in found.figures]
    legible = min(each.legible for each in found.figures)
    seconds = sum(each.seconds for each in found.figures) / len(found.figures)
    return [language, *wrong, f"{legible:.2f}", f"{seconds:.1f}", f"{found.memory_bytes / 1e6:.0f}"]


if __name__ == "__main__":
    main()
