"""Recognize text with RapidOCR: PP-OCRv6 on ONNX Runtime, for Latin scripts, Chinese and Japanese.

Its package downloads models that it does not have. Here it gets the paths of those that it brings, and opens nothing
else.
"""

import ctypes
import math
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Quad
from ragstack_common.reading.ocr.recognizer import Recognition

if TYPE_CHECKING:
    from PIL.Image import Image

ENGINE: Final = "rapidocr"

DETECTION_SIDE: Final = 1600
"""Pixels of the longer side of the picture in which lines are looked for. They are read in the picture itself. In 1,280
pixels, 1 to 8 % of the characters of small print (5 points on A4) are lost, which takes a second less.

Source: ``benchmarks/ocr.py --points 5 --language en``."""

LEAST_DENSITY: Final = 0.7
"""Letters of a line, at least, in a length of its height: Latin text has about three, Chinese one. A script that the
model does not know, or a line upside down, becomes a few letters, of which it is certain."""

CERTAIN: Final = 0.85
"""Confidence of a line above which it is not upside down."""

TALL: Final = 1.5
"""Height of a line that runs downwards, at least, in its widths. Source: ``get_rotate_crop_image`` of RapidOCR."""

_MODELS: Final = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}

_OTHER_SCRIPTS: Final = frozenset(
    "am ar as be bg bn bo dv el fa gu he hi hy ka kk km kn ko ky lo mk ml mn mr my ne or pa ps ru sa sd si sr ta te tg"  # noqa: SIM905
    " th ti ug uk ur yi".split()
)
"""Languages whose letters the model does not have. Source: the list of characters in its metadata."""


_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameters of glibc's ``mallopt``. Source: malloc.h."""


def is_installed() -> bool:
    """Whether the package is there with its models, and ONNX Runtime."""
    return find_spec("onnxruntime") is not None and all(path.is_file() for path in _models().values())


def _models() -> dict[str, Path]:
    found = find_spec("rapidocr")
    folder = Path(found.origin).parent / "models" if found and found.origin else Path("none")
    return {part: folder / name for part, name in _MODELS.items()}


def _give_memory_back() -> None:
    """Have glibc return large blocks to the system at once.

    It keeps them otherwise, in parts for each thread: five pages then take 1,090 MB instead of 710, and end a process
    with a limit of 1,280 MB.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_parameter is not None:
        set_parameter(_M_MMAP_THRESHOLD, 1024**2)
        set_parameter(_M_ARENA_MAX, 2)


class RapidOcr:
    """RapidOCR with the models of its package, loaded."""

    def __init__(self) -> None:
        import numpy  # noqa: ICN001, PLC0415 - RapidOCR takes its pictures
        from rapidocr import RapidOCR  # noqa: PLC0415 - takes a second to load

        _give_memory_back()
        self._numpy = numpy
        paths = {f"{part}.model_path": str(path) for part, path in _models().items()}
        self._engine = RapidOCR(
            params={
                **paths,
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Global.use_preprocess_img": False,
                "Global.return_word_box": True,
                "Det.limit_type": "max",
                "Det.limit_side_len": DETECTION_SIDE,
                # Threads within a model wait for each other in a loop, which takes time from other processes.
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            }
        )
        self._threads = ThreadPoolExecutor(os.cpu_count())
        # It loads each model when it is first used, which takes memory that a limited process may not get later.
        blank = numpy.full((64, 320, 3), 255, numpy.uint8)
        self._run(blank, use_det=True, use_rec=False)
        self._run(blank, use_det=False, use_rec=True)

    def knows(self, language: str) -> bool:
        """Whether the model has the letters of a language."""
        return language not in _OTHER_SCRIPTS

    def recognize(self, image: "Image", _language: str | None = None) -> Recognition:
        """Find the lines of a picture: each is read as it runs, and upside down if that makes no sense."""
        lines = self._threads.map(partial(self._line, image), [*self._detected(image)])
        return Recognition(ENGINE, [line for line in lines if line is not None])

    def _detected(self, image: "Image") -> Iterator[Quad]:
        """Yield the corners of lines, which run to the right or downwards."""
        found = self._run(self._pixels(image), use_det=True, use_rec=False)
        for corners in [] if found.boxes is None else found.boxes:
            quad = Quad(*((float(x), float(y)) for x, y in corners))
            upright = math.dist(quad.upper_left, quad.lower_left) < TALL * math.dist(quad.upper_left, quad.upper_right)
            yield quad if upright else Quad(*quad[1:], quad[0])

    def _line(self, image: "Image", corners: Quad) -> FoundLine | None:
        line = self._recognized(image, corners)
        if line is not None and line.confidence < CERTAIN:
            turned = self._recognized(image, Quad(*corners[2:], *corners[:2]))
            if turned is not None and turned.confidence > line.confidence:
                return turned
        return line

    def _recognized(self, image: "Image", corners: Quad) -> FoundLine | None:
        from PIL import Image  # noqa: PLC0415 - images are opened by few processes

        width = round(math.dist(corners.upper_left, corners.upper_right))
        height = round(math.dist(corners.upper_left, corners.lower_left))
        if min(width, height) < 1:
            return None
        outline = (*corners.upper_left, *corners.lower_left, *corners.lower_right, *corners.upper_right)
        strip = image.transform((width, height), Image.Transform.QUAD, outline, Image.Resampling.BICUBIC)
        found = self._run(self._pixels(strip), use_det=False, use_rec=True)
        text, confidence = found.txts[0], float(found.scores[0])
        letters = sum(not letter.isspace() for letter in text)
        confidence *= min(1.0, letters / (LEAST_DENSITY * width / height))
        return FoundLine(tuple(_words(text, corners, found.word_results[0])), corners, confidence)

    def _run(self, pixels: Any, *, use_det: bool, use_rec: bool) -> Any:
        try:
            return self._engine(pixels, use_det=use_det, use_rec=use_rec)
        except Exception as error:
            if "bad_alloc" in str(error):  # as ONNX Runtime reports it
                raise MemoryError from None
            raise

    def _pixels(self, image: "Image") -> Any:
        """Return a picture as RapidOCR takes it: rows of blue, green and red."""
        return self._numpy.ascontiguousarray(self._numpy.asarray(image)[:, :, ::-1])


def _words(text: str, corners: Quad, found: Any) -> Iterator[FoundWord]:
    """Yield the words of a line.

    Args:
        text: Of the line.
        corners: Of the line.
        found: RapidOCR's steps of the line, from which letters were read, and their confidences.
    """
    steps: Sequence[int] = [step for word in found.word_cols for step in word]
    letters = sum(not letter.isspace() for letter in text)
    # The model takes equal steps along the line; a letter is read about in its middle.
    middles = [(step + 0.5) / found.line_txt_len for step in steps]
    if len(middles) != letters:
        middles = [(place + 0.5) / letters for place in range(letters)]
    half = 0.5 / max(1, len(text))
    place = offset = 0
    for word in text.split():
        offset = text.index(word, offset)
        certain = found.confs[offset : offset + len(word)]
        last = place + len(word) - 1
        box = corners.part(max(0.0, middles[place] - half), min(1.0, middles[last] + half))
        yield FoundWord(word, box, sum(certain) / max(1, len(certain)))
        place, offset = last + 1, offset + len(word)
