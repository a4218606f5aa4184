"""How well a judge tells sentences that their passages support from others, on sentences with known verdicts."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from evaluation.dataset import CORPUS, DataSetError, Document, entries
from evaluation.table import Table
from ragstack_common.answers.answer import Sentence, Verdict
from ragstack_common.answers.models.protocol import Passage
from ragstack_common.answers.support import MAX_SENTENCES, SUPPORT_SECONDS, SupportJudge, judged
from ragstack_common.core.deadline import wait_for
from ragstack_common.search import RetrievedChunk

SUPPORT: Final = "support.jsonl"
NOT_SUPPORTED: Final[Verdict] = "not supported"
KnownVerdict = Literal["supported", "partly", "not supported"]


class Case(BaseModel):
    """A sentence that cites passages, and what a judge should say about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(alias="_id", min_length=1)
    sentence: str = Field(min_length=1)
    passages: tuple[str, ...] = Field(min_length=1)
    verdict: KnownVerdict


@dataclass(frozen=True)
class MeasuredSupport:
    """The verdicts of a judge, by the id of the case; and remarks about calls that failed."""

    cases: Sequence[Case]
    verdicts: Mapping[str, Verdict]
    remarks: Sequence[str] = ()

    @cached_property
    def counts(self) -> Counter[tuple[str, str]]:
        """How many cases have a known verdict, and another one of the judge."""
        return Counter((case.verdict, self.verdicts[case.id]) for case in self.cases)

    @property
    def precision(self) -> float:
        """Share of the verdicts "not supported" that are right; NaN if there are none."""
        return self._share([case for case in self.cases if self.verdicts[case.id] == NOT_SUPPORTED])

    @property
    def recall(self) -> float:
        """Share of the sentences that are not supported whose verdict is that."""
        return self._share([case for case in self.cases if case.verdict == NOT_SUPPORTED])

    def _share(self, cases: Sequence[Case]) -> float:
        found = sum(case.verdict == self.verdicts[case.id] == NOT_SUPPORTED for case in cases)
        return found / len(cases) if cases else math.nan


def read(folder: Path) -> tuple[list[Case], dict[str, Document]]:
    """Read the cases of a data set, and its documents.

    Raises:
        DataSetError: A file is missing or malformed, or a case names a passage that the corpus lacks.
    """
    documents = entries(folder / CORPUS, Document)
    cases = list(entries(folder / SUPPORT, Case).values())
    for case in cases:
        if unknown := [name for name in case.passages if name not in documents]:
            raise DataSetError(f"{folder / SUPPORT}: {case.id!r} names {unknown[0]!r}, which {CORPUS} lacks")
    return cases, documents


def measured(
    cases: Sequence[Case], documents: Mapping[str, Document], judge: SupportJudge, advance: Callable[[], None]
) -> MeasuredSupport:
    """Judge all cases, as many at a time as an answer may have."""
    verdicts: dict[str, Verdict] = {}
    remarks: list[str] = []
    for start in range(0, len(cases), MAX_SENTENCES):
        batch = cases[start : start + MAX_SENTENCES]
        names = list(dict.fromkeys(name for case in batch for name in case.passages))
        chunks = [RetrievedChunk(content=documents[name].markdown, score=0, source=name) for name in names]
        passages = [Passage(number, chunk) for number, chunk in enumerate(chunks, start=1)]
        sentences = [
            Sentence(
                start=0,
                end=len(case.sentence),
                text=case.sentence,
                citations=[names.index(name) + 1 for name in case.passages],
                unsupported=False,
            )
            for case in batch
        ]
        found, remark = wait_for(judged(sentences, passages, judge, SUPPORT_SECONDS))
        verdicts |= {case.id: found[place] for place, case in enumerate(batch)}
        remarks += [] if remark is None else [remark]
        for _ in batch:
            advance()
    return MeasuredSupport(cases, verdicts, remarks)


def tables(found: MeasuredSupport) -> list[Table]:
    """Return the verdicts by the known one, and the figures of "not supported"."""
    given = get_args(Verdict)
    rows = [
        [known, *(found.counts[known, verdict] for verdict in given)]
        for known in ("supported", "partly", NOT_SUPPORTED)
    ]
    figures = [[NOT_SUPPORTED, found.precision, found.recall]]
    return [
        Table(f"{len(found.cases)} sentences", ["known verdict", *given], rows, notes=found.remarks),
        Table("Recognized", ["verdict", "precision", "recall"], figures),
    ]
