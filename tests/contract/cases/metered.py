"""A meter around a cache around a federation."""

from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.in_memory import holding, opened_by

CASES = [
    Case(
        "metered_cached_federated",
        opened_by(
            lambda documents: {
                "type": "metered",
                "name": "docs",
                "backend": {
                    "type": "cached",
                    "backend": {
                        "type": "federated",
                        "timeout_seconds": PATIENCE_SECONDS,
                        "backends": {"first": holding(documents[:6]), "second": holding(documents[6:])},
                    },
                },
            }
        ),
    ),
]
