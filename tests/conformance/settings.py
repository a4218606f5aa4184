"""How much hypothesis asks: the same every time, or with HYPOTHESIS_PROFILE=thorough much more and ever new."""

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
SETTINGS = settings(
    max_examples=1_000 if THOROUGH else 40,
    derandomize=not THOROUGH,
    database=None,
    deadline=None,
    # Fixtures live as long as the session, and large requests are what is asked for.
    suppress_health_check=list(HealthCheck),
)
