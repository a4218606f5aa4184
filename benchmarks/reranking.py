"""Measure the lexical reranker on 500 passages of 1,000 characters, compared with BM25 in bm25s and in plain Python.

A reranker sees its passages for the first time with the query, so the others index them in the same call. The passages
are windows over the text of Python's own documentation, cut as the specification says (1,000 characters, 100 shared
with the next), with the attributes of a chunk. The contenders take turns on each query.

Run: ``python benchmarks/reranking.py [--rounds 5] [--passages 500]``. Reach: a median under 10 ms of processor time,
which other load on the machine affects less than elapsed time.
"""

import argparse
import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from typing import Final

import bm25s
from parts.measuring import percentile, table
from rich.console import Console
from rich.table import Table

from ragstack_common.retrieval.rerank import LexicalReranker, Passage
from ragstack_common.stopwords import STOP_WORDS

WINDOW: Final = 1_000
STEP: Final = 900
REACH_MS: Final = 10.0
QUERIES: Final = (
    "How do I close a file when an exception is raised?",
    "default value of a parameter",
    "async for",
    "What is the difference between a list and a tuple?",
    "method resolution order of multiple inheritance in classes with a metaclass",
    "f-string format specification",
    "import a module relative to its package",
    '"with statement" context manager',
    "garbage collection of reference cycles",
    "operator precedence",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="times that each query is asked (default: 5)")
    parser.add_argument("--passages", type=int, default=500, help="passages to rerank (default: 500)")
    options = parser.parse_args()
    passages = corpus(options.passages)
    texts = [passage.text for passage in passages]
    reranker = LexicalReranker()
    contenders: dict[str, Callable[[str], object]] = {
        "lexical reranker": lambda query: reranker.order(query, passages),
        "bm25s, indexing included": lambda query: with_bm25s(query, texts),
        "BM25 in plain Python": lambda query: in_plain_python(query, texts),
    }
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(options.rounds + 1):
        for query in QUERIES:
            for name, call in contenders.items():
                start, start_cpu = time.perf_counter(), time.process_time()
                call(query)
                if number:  # the first round warms up
                    processor[name].append((time.process_time() - start_cpu) * 1000)
                    wall[name].append((time.perf_counter() - start) * 1000)
    Console().print(report(wall, processor, len(passages)))


def report(wall: dict[str, list[float]], processor: dict[str, list[float]], passages: int) -> Table:
    base = statistics.median(wall["lexical reranker"])
    rows = []
    for name, times in wall.items():
        median, cpu = statistics.median(times), statistics.median(processor[name])
        rows.append((name, f"{median:.2f}", f"{percentile(times, 95):.2f}", f"{cpu:.2f}", f"{median / base:.2f}"))
    is_met = statistics.median(processor["lexical reranker"]) < REACH_MS
    return table(
        f"{passages} passages of {WINDOW:,} characters, {len(next(iter(wall.values())))} searches each",
        ("", "median ms", "p95 ms", "processor ms", "times the reranker"),
        rows,
        f"Reach: under {REACH_MS:g} ms of one core: {'met' if is_met else 'missed'}",
    )


def corpus(count: int) -> list[Passage]:
    text = "\n\n".join(topics.values())
    starts = range(0, len(text) - WINDOW, STEP)[:count]
    return [
        Passage(
            text[start : start + WINDOW],
            {"corpus": "python", "part": number, "year": 2000 + number % 25, "source": f"s3://topics/{number}.txt"},
            1 - number / count,
        )
        for number, start in enumerate(starts)
    ]


def with_bm25s(query: str, texts: list[str]) -> object:
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    asked = bm25s.tokenize([query], return_ids=False, show_progress=False)[0]
    return index.get_scores([word for word in asked if word in index.vocab_dict])


def in_plain_python(query: str, texts: Sequence[str]) -> list[float]:
    """Count all words of all texts, as BM25 is usually written."""
    counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths)
    asked = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP_WORDS]
    scores = [0.0] * len(texts)
    for word in asked:
        holding = sum(word in count for count in counts)
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for number, count in enumerate(counts):
            frequency = count[word]
            norm = 1.5 * (0.25 + 0.75 * lengths[number] / mean)
            scores[number] += rarity * frequency * 2.5 / (frequency + norm)
    return scores


if __name__ == "__main__":
    main()
