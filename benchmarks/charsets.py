"""Measure how often texts in legacy encodings are read right, wrong, or refused as unknown.

The texts are translations of messages that a Debian system has in /usr/share/locale, in 26 languages, each in the
encodings in which such files exist. A sample is a run of messages, cut to a number of bytes.
"right" is exactly the original text; "wrong" is another one, in silence; the rest was refused.

Run: ``python benchmarks/charsets.py [--samples 20] [--others]``; ``--others`` adds the detectors charset-normalizer
and faust-cchardet if they are installed.
"""

import argparse
import gettext
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from parts.measuring import table
from rich.console import Console

from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import UnreadableDocument

LOCALES = Path("/usr/share/locale")
SEED = 7
BYTES = (20, 50, 200, 1_000, 5_000, 20_000)
MIN_MESSAGE = 25
ENCODINGS = {
    **dict.fromkeys(("fr", "it", "es", "pt", "de", "nl", "sv"), ("cp1252", "iso8859-15", "mac-roman", "cp850")),
    **dict.fromkeys(("pl", "cs", "hu", "ro", "hr"), ("cp1250", "iso8859-2", "cp852")),
    **dict.fromkeys(("ru", "bg"), ("cp1251", "koi8-r", "iso8859-5", "cp866")),
    "uk": ("cp1251", "koi8-u"),
    "el": ("cp1253", "iso8859-7"),
    "tr": ("cp1254", "iso8859-9"),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "lt": ("cp1257",),
    "vi": ("cp1258",),
    "th": ("cp874",),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "ko": ("cp949",),
    "zh_CN": ("gb18030", "hz"),
    "zh_TW": ("big5",),
}
"""The encodings of each language."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20, help="samples of each language, encoding and size (20)")
    parser.add_argument("--others", action="store_true", help="measure other detectors too")
    chosen = parser.parse_args()
    console = Console()
    readers: dict[str, Callable[[bytes], str | None]] = {"RAGStack": own}
    if chosen.others:
        readers |= others()
    counts: dict[tuple[str, int], Counter[str]] = {}
    failures = Counter[tuple[str, str]]()
    for language, encoding, size, text in samples(chosen.samples):
        data = text.encode(encoding)
        for name, read in readers.items():
            found = read(data)
            outcome = "refused" if found is None else "right" if found == text else "wrong"
            counts.setdefault((name, size), Counter())[outcome] += 1
            if name == "RAGStack" and outcome == "wrong" and size >= 200:
                failures[language, encoding] += 1
    if not counts:
        sys.exit(f"{LOCALES} has no translations: on Debian, install a package with some")
    rows = []
    for (name, size), outcomes in sorted(counts.items(), key=lambda each: (each[0][0], each[0][1])):
        total = sum(outcomes.values())
        rows.append(
            [
                name,
                f"{size:,}",
                f"{total:,}",
                *(f"{outcomes[each] / total:.3f}" for each in ("right", "wrong", "refused")),
            ]
        )
    console.print(table("Texts in legacy encodings", ["reader", "bytes", "texts", "right", "wrong", "refused"], rows))
    worst = ", ".join(f"{language} {encoding} {count}" for (language, encoding), count in failures.most_common(8))
    console.print(f"Wrong at 200 bytes or more: {worst or 'none'}")


def own(data: bytes) -> str | None:
    """Read a text as documents are read."""
    try:
        return decoded(data)
    except UnreadableDocument:
        return None


def others() -> dict[str, Callable[[bytes], str | None]]:
    """Return the other detectors that are installed."""
    found: dict[str, Callable[[bytes], str | None]] = {}
    if find_spec("charset_normalizer"):
        from charset_normalizer import from_bytes  # noqa: PLC0415 - optional

        def normalizer(data: bytes) -> str | None:
            best = from_bytes(data).best()
            return data.decode(best.encoding, "replace") if best else None

        found["charset-normalizer"] = normalizer
    if find_spec("cchardet"):
        import cchardet  # type: ignore[import-not-found]  # noqa: PLC0415 - optional

        def uchardet(data: bytes) -> str | None:
            encoding = cchardet.detect(data)["encoding"]
            try:
                return data.decode(encoding, "replace") if encoding else None
            except LookupError:
                return None

        found["cchardet"] = uchardet
    return found


def samples(count: int) -> Iterator[tuple[str, str, int, str]]:
    """Yield texts with their language, an encoding and its number of bytes."""
    chance = random.Random(SEED)
    for language, encodings in ENCODINGS.items():
        messages = [*translations(language)]
        for encoding in encodings:
            fitting = [each for each in messages if encodable(each, encoding)]
            for size in BYTES if fitting else ():
                for _ in range(count):
                    text = cut(chance, fitting, encoding, size)
                    # What is ASCII or UTF-8 needs no detection.
                    if not text.isascii():
                        yield language, encoding, size, text


def translations(language: str) -> Iterator[str]:
    """Yield the messages of a language that are sentences."""
    for file in sorted(LOCALES.glob(f"{language}/LC_MESSAGES/*.mo")):
        with file.open("rb") as catalogue:
            try:
                found = gettext.GNUTranslations(catalogue)
            except (UnicodeDecodeError, OSError):
                continue
        for original, translation in found._catalog.items():  # type: ignore[attr-defined]  # noqa: SLF001
            text = " ".join(str(translation).split())
            if original and text != original and len(text) >= MIN_MESSAGE and not re.search(r"[%{}<>=\\|]", text):
                yield text


def encodable(text: str, encoding: str) -> bool:
    """Whether an encoding has all characters of a text, and gives the same text back."""
    try:
        return text.encode(encoding).decode(encoding) == text
    except UnicodeError:
        return False


def cut(chance: random.Random, messages: list[str], encoding: str, size: int) -> str:
    """Return consecutive messages, beginning with a random one, of at most *size* bytes."""
    first = chance.randrange(len(messages))
    text = ""
    for place in range(len(messages)):
        text = f"{text} {messages[(first + place) % len(messages)]}".strip()
        if len(text.encode(encoding)) > size:
            break
    while len(text.encode(encoding)) > size:
        text = text[: -max(1, (len(text.encode(encoding)) - size) // 3)]
    return text.strip()


if __name__ == "__main__":
    main()
