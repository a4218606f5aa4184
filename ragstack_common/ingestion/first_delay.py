"""When the knowledge base is asked for the first time about documents that it accepted."""

from typing import Final

from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.telemetry import LOGGER

LONGEST_SECONDS: Final = 300.0

LONGEST_OF_FEW_SECONDS: Final = 5.0
"""Of fewer documents than one call takes. They may be quicker than the many before them, from which the pace was
learned; a question too early costs one call, and one too late keeps somebody waiting."""

A_LITTLE_MORE: Final = 1.1
"""Than what documents take at present: to ask a little late costs less than to ask twice."""


def first_delay(services: Services, documents: int) -> float:
    """Tell after how many seconds the knowledge base is probably done with so many documents."""
    settings = services.settings
    least = settings.first_delay_seconds
    longest = LONGEST_OF_FEW_SECONDS if documents < settings.documents_per_call else LONGEST_SECONDS
    try:
        expected = services.pace.expected_seconds() or 0.0
    except CALL_ERRORS as error:
        LOGGER.warning("Nothing is known of how long documents take: %s", error)
        return least
    return max(least, min(longest, A_LITTLE_MORE * expected))
