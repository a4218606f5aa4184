"""Recognize a word with the models that the extra brings."""

from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from ragstack_common.reading.ocr.engines import recognizer
from ragstack_common.reading.ocr.pages import read_with_recognition

picture = Image.new("RGB", (600, 120), "white")
ImageDraw.Draw(picture).text((40, 30), "Reimbursement", "black", ImageFont.load_default(48))
written = BytesIO()
picture.save(written, "PNG")

found = read_with_recognition(written.getvalue(), "png", recognizer("rapidocr"), "rapidocr")

assert found.text == "## Page 1 (read from an image)\n\nReimbursement", found.text
