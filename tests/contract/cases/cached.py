"""A cache around a reranker."""

from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.in_memory import holding, opened_by

CASES = [
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
