"""A cache around a backend, around a cache, and around a reranker."""

from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.in_memory import holding, opened_by

CASES = [
    Case("cached", opened_by(lambda documents: {"type": "cached", "backend": holding(documents)})),
    Case(
        "cached_twice",
        opened_by(
            lambda documents: {
                "type": "cached",
                "max_entries": 2,
                "backend": {"type": "cached", "ttl_seconds": 60, "backend": holding(documents)},
            }
        ),
    ),
    Case(
        "cached_reranked",
        opened_by(
            lambda documents: {
                "type": "cached",
                "backend": {"type": "reranked", "timeout_seconds": PATIENCE_SECONDS, "backend": holding(documents)},
            },
        ),
    ),
]
