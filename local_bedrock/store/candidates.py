"""The rows that could be among the best of a search, found from eight bits, and then ranked by their full vectors."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from local_bedrock.store.codes import Bounds, QueryCodes, Vectors
from local_bedrock.store.products import Scores

Ids = npt.NDArray[np.int64]

Read = Callable[[Ids], tuple[Ids, Vectors]]
"""Reads the full vectors of chunks; returns the places of those that exist, ascending, and their vectors."""

SLACK: Final = 1e-6
"""More than the scores of a ranking lose by rounding after the products, of values up to 1."""

ROWS_IN_GROUP: Final = 256
GROUPS_PER_RESULT: Final = 4


def score(share: float | None, cosines: npt.NDArray[Any], addends: Bounds) -> npt.NDArray[Any]:
    """Return weighted sums, as :class:`Weighted` describes them, in the precision of the products.

    Without a share, the products are the scores.
    """
    if share is None:
        return cosines
    found: npt.NDArray[Any] = np.clip(cosines, 0.0, 1.0)
    found *= share
    found += addends
    np.minimum(found, 1.0, out=found)
    return found


@dataclass(frozen=True)
class Weighted:
    """By the weighted sum of the product and an addend, from 0 to 1.

    Attributes:
        share: Of the product, from 0 to 1.
        rows: The rows that have an addend, ascending.
        addends: Theirs, from 0 to ``1 - share``.
        bm25: From which the addends were computed.
    """

    share: float
    rows: Ids
    addends: Bounds
    bm25: Bounds

    def among(self, rows: Ids) -> "Weighted":
        """Return the same for some rows, ascending, by their places."""
        at = np.minimum(np.searchsorted(rows, self.rows), len(rows) - 1)
        is_among = rows[at] == self.rows
        return Weighted(self.share, at[is_among], self.addends[is_among], self.bm25[is_among])

    def of(self, rows: Ids) -> tuple[Bounds, Bounds]:
        """Return the addends of some rows and their BM25, 0 for those without one."""
        if not len(self.rows):
            return np.zeros(len(rows)), np.zeros(len(rows))
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        is_there = self.rows[at] == rows
        return np.where(is_there, self.addends[at], 0.0), np.where(is_there, self.bm25[at], 0.0)


@dataclass(frozen=True)
class Columns:
    """What is known of rows without their vectors: the chunks, and the ``errors`` and ``norms`` of their codes."""

    chunks: Ids
    errors: Vectors
    norms: Vectors

    def chosen(self, rows: Ids) -> "Columns":
        """Return some of the rows."""
        return Columns(self.chunks[rows], self.errors[rows], self.norms[rows])


@dataclass(frozen=True)
class Candidates:
    """Every row that could be among the best of a search.

    Attributes:
        query: Of shape ``(dimension,)``.
        coded: The same in eight bits.
        widest: How far a product from eight bits can be from that of the full vector; infinite if it is unknown.
        share: As in :class:`Weighted`; None if the products are the scores.
        limit: The number of best rows.
        columns: Of these rows and of others.
        rows: The places of the candidates there, ascending. The next arrays have the same length.
        cosines: Their products with the query.
        addends: As in :class:`Weighted`; without words, all are 0.
        bm25: As in :class:`Weighted`.
    """

    query: Vectors
    coded: QueryCodes
    widest: float
    share: float | None
    limit: int
    columns: Columns
    rows: Ids
    cosines: Bounds
    addends: Bounds
    bm25: Bounds

    def __len__(self) -> int:
        return min(self.limit, len(self.rows))

    def chunks(self, places: Ids) -> Ids:
        """Return the chunks at some places."""
        return self.columns.chunks[self.rows[places]]

    def scores(self, cosines: Scores, places: Ids) -> Bounds:
        """Return the scores of those at some places, from their products."""
        return score(self.share, cosines.astype(np.float64), self.addends[places])

    def possible(self, number: int) -> Ids:
        """Return the places of those that could be among the best of this number."""
        if number >= len(self.rows) or math.isinf(self.widest):
            return np.arange(len(self.rows))
        scores = score(self.share, self.cosines, self.addends)
        places = np.flatnonzero(scores >= np.partition(scores, -number)[-number] - 2 * self.widest - SLACK)
        # Their own bounds exclude more, but reading those of every row takes longer.
        rows, cosines, addends = self.rows[places], self.cosines[places], self.addends[places]
        bounds = self.coded.bounds(self.columns.errors[rows], self.columns.norms[rows])
        lowest = score(self.share, cosines - bounds, addends)
        highest = score(self.share, cosines + bounds, addends)
        found: Ids = places[highest >= np.partition(lowest, -number)[-number] - SLACK]
        return found

    def narrowed(self) -> "Candidates":
        """Return those that could be among the best by their own bounds, without what is known of other rows."""
        places = self.possible(self.limit)
        numbers = (column[places] for column in (self.cosines, self.addends, self.bm25))
        columns = self.columns.chosen(self.rows[places])
        return Candidates(
            self.query, self.coded, self.widest, self.share, self.limit, columns, np.arange(len(places)), *numbers
        )

    def best(self, read: Read, number: int) -> tuple[Ids, Scores]:
        """Return the places of the best and their cosines, best first, ties by the id of the chunk.

        Chunks that were deleted meanwhile are left out.
        """
        places, cosines, _ = self.best_with_vectors(read, number)
        return places, cosines

    def best_with_vectors(self, read: Read, number: int) -> tuple[Ids, Scores, Vectors]:
        """Return the same, and the vectors of the best."""
        places = self.possible(min(number, self.limit))
        if not len(places):
            return places, np.empty(0, dtype=np.float32), np.empty((0, len(self.query)), dtype=np.float32)
        there, vectors = read(self.chunks(places))
        places = places[there]
        # Row by row, so that equal vectors get equal scores.
        cosines: Scores = np.einsum("ij,j->i", vectors, self.query)
        scores = self.scores(cosines, places)
        order = np.lexsort((self.chunks(places), -scores))[: min(number, self.limit)]
        return places[order], cosines[order], vectors[order]


def select(approximate: Scores, step: float, order: Weighted | None, limit: int, widest: float) -> Ids:
    """Return the places of rows among which the best are, ascending, and not many more.

    Args:
        approximate: The products in steps, minus infinity for rows that do not count.
        step: As in :class:`QueryCodes`.
        order: Its rows are places here, of rows that count; None by the products.
        limit: The number of best rows.
        widest: How far a product can be from the exact one at most.
    """
    if limit >= len(approximate):
        return np.flatnonzero(approximate > -np.inf)
    by_product = step * _floor(approximate, limit)  # at least so many are above it
    if order is None:
        return _above(approximate, (by_product - 2 * widest - SLACK) / step)
    with_words = score(order.share, step * approximate[order.rows], order.addends)
    floor = order.share * min(max(by_product, 0.0), 1.0)
    if len(order.rows) >= limit:
        floor = max(floor, _floor(with_words, limit))
    floor -= 2 * (order.share * widest + SLACK)
    if floor <= 0:
        return np.flatnonzero(approximate > -np.inf)
    places = order.rows[with_words >= floor]
    if order.share < floor:
        return places
    both = np.sort(np.concatenate([places, _above(approximate, floor / order.share / step)]))
    once: Ids = both[np.append(True, both[1:] != both[:-1])]
    return once


def _above(approximate: Scores, floor: float) -> Ids:
    at_least = np.nextafter(np.float32(floor), np.float32(-np.inf))
    return np.flatnonzero(approximate >= at_least if np.isfinite(at_least) else approximate > at_least)


def _floor(approximate: Scores, limit: int) -> float:
    """Return a number that at least ``limit`` scores reach: of the largest of each group, the one in that place.

    Finding it in all of 1,000,000 takes 10 ms, and in the largest ones of groups less than 1.
    """
    rows = min(len(approximate) // (GROUPS_PER_RESULT * limit), ROWS_IN_GROUP)
    if rows > 1:
        whole = len(approximate) - len(approximate) % rows
        approximate = approximate[:whole].reshape(rows, -1).max(axis=0)
    return float(np.partition(approximate, -limit)[-limit])
