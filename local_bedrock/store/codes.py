"""Vectors in eight bits, with the bounds of what the rounding costs.

A row ``x`` is kept as ``scale * codes``, and a query ``q`` as ``step * codes``. The product of the codes is exact, in
whole numbers, and differs from ``q . x`` by the parts that were rounded off, whose lengths are known:

    |q . x - step * scale * (codes . codes)| <= |q| * |x - scale * codes| + |q - step * codes| * |scale * codes|

So a search that keeps every row within its bound loses none, whatever the vectors are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

LARGEST: Final = 127

_HEAD: Final = 3 * 4
"""Bytes before the codes of a row in SQLite: the scale, the error and the norm."""

_UNIT_ROUNDOFF: Final = 2.0**-24
_MORE_ROUNDINGS: Final = 16
"""Roundings in 32 bits in addition to those of a sum: of products, of the conversion and of the scales."""

_LOST_IN_SQUARES: Final = 1e-20
"""More than the length of 4,096 numbers whose squares are 0 in 32 bits."""

ROWS_AT_ONCE: Final = 512

Vectors = npt.NDArray[np.float32]
Small = npt.NDArray[np.int8]
Bounds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Codes:
    """Rows in eight bits.

    Attributes:
        values: The codes, from -127 to 127, of shape ``(rows, dimension)``.
        scales: By which the codes of each row are multiplied.
        errors: Length of what the rounding of each row cut off, rounded up.
        norms: Length of each row as it was rounded, rounded up.
    """

    values: Small
    scales: Vectors
    errors: Vectors
    norms: Vectors

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, vectors: Vectors) -> "Codes":
        """Round finite vectors of shape ``(rows, dimension)``."""
        found = cls(np.empty(vectors.shape, dtype=np.int8), *np.empty((3, len(vectors)), dtype=np.float32))
        for first in range(0, len(vectors), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            exact = np.ascontiguousarray(vectors[part], dtype=np.float32)
            scales = np.abs(exact).max(axis=1, initial=0.0) / np.float32(LARGEST)
            rounded = np.divide(exact, np.where(scales > 0, scales, np.float32(np.inf))[:, None], dtype=np.float32)
            np.clip(np.rint(rounded, out=rounded), -LARGEST, LARGEST, out=rounded)  # the scale was rounded too
            found.values[part], found.scales[part] = rounded, scales
            rounded *= scales[:, None]
            found.norms[part] = _lengths(rounded)
            found.errors[part] = _lengths(exact - rounded) + found.norms[part] * np.float32(4 * _UNIT_ROUNDOFF)
        return found

    def chosen(self, rows: npt.NDArray[np.int64]) -> "Codes":
        """Return some of the rows."""
        return Codes(self.values[rows], self.scales[rows], self.errors[rows], self.norms[rows])

    @classmethod
    def joined(cls, parts: Sequence["Codes"], dimension: int) -> "Codes":
        """Return the rows of several parts, or none of this dimension."""
        every = [cls.of(np.empty((0, dimension), dtype=np.float32)), *parts]
        return cls(*(np.concatenate(columns) for columns in zip(*(vars(each).values() for each in every), strict=True)))

    @classmethod
    def read(cls, rows: Sequence[bytes]) -> "Codes":
        """Read rows as :meth:`written` returns them; all have one dimension."""
        joined = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
        head = joined[:, :_HEAD].copy().view("<f4").astype(np.float32)
        return cls(joined[:, _HEAD:].astype(np.int8), *head.T.copy())

    def written(self) -> list[bytes]:
        """Return each row as SQLite stores it."""
        heads = np.stack([self.scales, self.errors, self.norms], axis=1).astype("<f4")
        return [head.tobytes() + values.tobytes() for head, values in zip(heads, self.values, strict=True)]


@dataclass(frozen=True)
class QueryCodes:
    """A query in eight bits.

    Attributes:
        values: Of shape ``(dimension,)``.
        step: By which they are multiplied; not 0.
        norm: Length of the query.
        error: Length of what the rounding cut off.
    """

    values: Small
    step: float
    norm: float
    error: float

    @classmethod
    def of(cls, query: Vectors) -> "QueryCodes":
        """Round a query."""
        exact = query.astype(np.float64)
        step = float(np.abs(exact).max(initial=0.0)) / LARGEST or 1.0
        values = np.rint(exact / step)
        cut_off = exact - step * values
        return cls(values.astype(np.int8), step, math.sqrt(exact @ exact), math.sqrt(cut_off @ cut_off))

    def bounds(self, errors: Vectors | Bounds, norms: Vectors | Bounds) -> Bounds:
        """Return how far the products of rows with these errors and norms can be from those in 32 bits."""
        of_error, of_norm = map(np.float64, self._factors)  # which keep the sums in 64 bits
        found: Bounds = errors * of_error + norms * of_norm
        return found

    def bound(self, error: float, norm: float) -> float:
        """Return the same for one row."""
        of_error, of_norm = self._factors
        return error * of_error + norm * of_norm

    @cached_property
    def _factors(self) -> tuple[float, float]:
        """The parts of an error and of a norm in a bound."""
        roundings = (len(self.values) + _MORE_ROUNDINGS) * _UNIT_ROUNDOFF * (self.norm + self.error)
        return (self.norm + roundings) * (1 + 1e-9), (self.error + roundings) * (1 + 1e-9)


def _lengths(vectors: Vectors) -> Vectors:
    """Return at least the length of each row, although its squares and their sum were rounded."""
    with np.errstate(over="ignore"):  # an infinite bound is one too
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    roundings = np.float32(1 + (vectors.shape[1] + _MORE_ROUNDINGS) * _UNIT_ROUNDOFF)
    found: Vectors = lengths * roundings + np.float32(_LOST_IN_SQUARES)
    return found
