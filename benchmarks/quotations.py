"""Measure how many false quotations pass as verified, and how many true ones don't.

The cases are those of the tests: written by hand, and generated with a fixed seed from paragraphs in several languages
and from the sample documents. A true quotation is a run of sentences with other white space, in quotation marks of any
kind; a false one has one change, such as another number, another order or a negation less.

Run: ``python benchmarks/quotations.py [FOLDER] [--count 400]``. FOLDER has a folder
for each language with a corpus.jsonl in BEIR's form; without it, only the sample documents and the written cases are
measured.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from parts.measuring import table
from rich.console import Console

from ragstack_common.answers.models.protocol import NumberedPassage
from ragstack_common.answers.verify.citations import AnswerVerifier
from ragstack_common.search import RetrievedChunk
from tests.support import quotation_attacks
from tests.support.quotation_attacks import attacks
from tests.support.quotation_cases import FALSE, TRUE, Generated, generated

SAMPLES = Path(__file__).parent.parent / "samples" / "documents"
SEED = 17


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="paragraphs of each language")
    parser.add_argument("--count", type=int, default=400, help="true quotations of each set (400)")
    chosen = parser.parse_args()
    console = Console(width=120)
    started = time.process_time()
    sets: dict[str, Iterable[Generated]] = {"written by hand": written()}
    samples = [file.read_text(encoding="utf-8") for file in sorted(SAMPLES.rglob("*.md"))]
    sets["sample documents"] = all_generated(samples, "en", chosen.count)
    for language in ("en", "de", "ru", "hi", "zh", "ar"):
        corpus = chosen.folder and chosen.folder / language / "corpus.jsonl"
        if corpus and corpus.is_file():
            paragraphs = [json.loads(line)["text"] for line in corpus.read_text(encoding="utf-8").splitlines()]
            sets[language] = all_generated(paragraphs, language, chosen.count)
        else:
            console.print(f"Skipped {language}: no corpus.jsonl in {corpus and corpus.parent}")
    rows = []
    passed: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    for name, cases in sets.items():
        counts = counted(cases, passed, changes)
        rows.append([name, *(f"{counts[column]:,}" for column in ("true", "lost", "false", "passed"))])
    console.print(table("Quotations", ("set", "true", "not verified", "false", "verified"), rows))
    console.print(f"False ones by change: {', '.join(f'{passed[one]} of {changes[one]:,} {one}' for one in changes)}")
    total = sum(changes.values())
    console.print(f"{total:,} false quotations; {time.process_time() - started:.0f} s of processor time")


def all_generated(texts: list[str], language: str, count: int) -> Iterator[Generated]:
    yield from generated(texts, language, SEED, count)
    yield from attacks(texts, language, SEED, count // 4)


def written() -> Iterator[Generated]:
    for source, quotation in TRUE + quotation_attacks.TRUE:
        yield Generated(source, quotation, "none")
    for source, quotation in FALSE + quotation_attacks.FALSE:
        yield Generated(source, quotation, "written by hand")


def counted(cases: Iterable[Generated], passed: Counter[str], changes: Counter[str]) -> Counter[str]:
    """Count the cases, and add the false ones to the counts of each change."""
    found: Counter[str] = Counter()
    for case in cases:
        verified = is_verified(case)
        found["true" if case.is_true else "false"] += 1
        if case.is_true:
            found["lost"] += not verified
        else:
            found["passed"] += verified
            passed[case.change] += verified
            changes[case.change] += 1
    return found


def is_verified(case: Generated) -> bool:
    """Whether an answer with a quotation passes: for a false one, it is enough that nothing is marked."""
    verifier = AnswerVerifier(
        [NumberedPassage(1, RetrievedChunk(content=case.source, score=0.5, source="s3://b/1.md"))]
    )
    verifier.feed(f"It says {case.quotation} [1].")
    verifier.finish()
    quotations = [quotation for sentence in verifier.sentences for quotation in sentence.quotations]
    is_marked = any(sentence.unsupported for sentence in verifier.sentences)
    return not is_marked and (bool(quotations) or not case.is_true)


if __name__ == "__main__":
    main()
