"""Conversion of distances and similarities to scores from 0 to 1, in the order of the vector store."""


def from_cosine_distance(distance: float) -> float:
    """Return the cosine, or 0 if it is negative. Source: Chroma, whose cosine distance is 1 - cosine."""
    return min(1.0, max(0.0, 1.0 - distance))


def from_squared_distance(distance: float) -> float:
    """Return 1 for equal vectors, .5 at distance 1, and less for larger distances."""
    return 1.0 / (1.0 + max(0.0, distance))


def from_inner_product(product: float) -> float:
    """Return the inner product of unit vectors, which is their cosine, clamped to 0 and 1.

    Other vectors may have products over 1, which all become 1: use cosine for them.
    """
    return min(1.0, max(0.0, product))
