"""What a run costs, from the number of its calls."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

PRICES: Final[Mapping[str, Mapping[str, float]]] = {
    "searches": {
        "bedrock-agent-runtime.Retrieve": 0.001,
        "bedrock-agent-runtime.AgenticRetrieveStream": 0.004,
    },
    "models": {
        "bedrock-runtime.*": 0.0001,
        "bedrock-agent.IngestKnowledgeBaseDocuments": 0.001,
        "bedrock-agent.StartIngestionJob": 0.001,
    },
    "S3 Vectors and S3": {"s3vectors.PutVectors": 0.0001, "s3vectors.*": 0.00001, "s3.*": 0.00001},
    "requests of the API": {"execute-api.Request": 0.0001},
}
"""Dollars for a call, by its part of the bill: upper bounds for us-east-1.

Retrieve is billed for managed knowledge bases alone, here for all. The embedding of all documents of a run is below a
cent. Sources: third parties' notes of Amazon Bedrock's and Amazon S3's prices of September 2026.
"""

EXPECTED: Final[Mapping[str, float]] = {
    "searches": 0.50,
    "models": 0.10,
    "S3 Vectors and S3": 0.02,
}
"""Dollars that the checks of the services are expected to cost, with about 500 searches of managed knowledge bases."""

EXPECTED_OF_STACKS: Final[Mapping[str, float]] = {"stacks for an hour": 0.40}
"""Dollars that the checks of the stacks are expected to cost: alarms, functions, models and logs."""


def cost_of(calls: Mapping[str, int]) -> dict[str, float]:
    """Return dollars by the parts of the bill; calls that cost nothing are left out."""
    found: dict[str, float] = {}
    for call, number in calls.items():
        for part, prices in PRICES.items():
            price = next((price for pattern, price in prices.items() if fnmatchcase(call, pattern)), 0.0)
            if price:
                found[part] = found.get(part, 0.0) + number * price
    return {part: round(dollars, 4) for part, dollars in sorted(found.items())}
