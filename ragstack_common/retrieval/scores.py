"""Distances and similarities of vector stores on one scale: 0 to 1, higher is better, in the order of the store."""


def from_cosine_distance(distance: float) -> float:
    """Return the cosine where it is over 0. Source: Chroma and S3 Vectors, whose cosine distance is 1 - cosine."""
    return min(1.0, max(0.0, 1.0 - distance))


def from_squared_distance(distance: float) -> float:
    """Return 1 for equal vectors, .5 at distance 1, and less the farther they are. Never a tie of unequal distances."""
    return 1.0 / (1.0 + max(0.0, distance))


def from_inner_product(product: float) -> float:
    """Return the product of vectors of unit length, which is their cosine, within 0 and 1.

    Vectors of other lengths may have products over 1, which all are 1: use cosine for them.
    """
    return min(1.0, max(0.0, product))
