"""How much hypothesis asks: the same every time, the beginning of what a long run asks, or thoroughly ever new things.

RAGSTACK_SOAK=1 makes a long run, HYPOTHESIS_PROFILE=thorough a thorough one.
"""

import os

from hypothesis import HealthCheck, settings

from tests.support.soak import SOAK

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
SETTINGS = settings(
    max_examples=1_000 if THOROUGH else 40 if SOAK else 4,
    derandomize=not THOROUGH,
    database=None,
    deadline=None,
    # Fixtures live as long as the session, and large requests are what is asked for.
    suppress_health_check=list(HealthCheck),
)
