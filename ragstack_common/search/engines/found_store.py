"""The vector store of a knowledge base whose settings do not name it, found out by GetKnowledgeBase."""

from functools import cache
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.aws_errors import meaning, public_reason
from ragstack_common.core.errors import ThrottledError
from ragstack_common.core.retry import Backoff
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import resource_id
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.settings.names import MANAGED, OTHER_STORE

_LOST: Final = (
    "until then a knowledge base of type MANAGED cannot be searched, one on S3 Vectors is searched without words, and"
    " filters that limit what callers see have fewer operators"
)


THROTTLED: Final = Backoff(4, 0.5)
"""Patience while GetKnowledgeBase is throttled, as when many processes start at once: at most 7.5 seconds."""


@cache
def store_of(knowledge_base_id: str, client: Any = None) -> str:
    """Return one of ``STORE_RULES``; OTHER for a store without rules, and, with a warning, if the call fails.

    A process asks once for each knowledge base, and again if it was throttled.

    Args:
        knowledge_base_id: Its id or its ARN.
        client: A boto3 client of bedrock-agent.

    Raises:
        ThrottledError: GetKnowledgeBase is throttled, so the next call may succeed.
    """
    from ragstack_common.core.clients import discovery_client  # noqa: PLC0415 - most processes do without

    own, agent = resource_id(knowledge_base_id), client or discovery_client()
    try:
        base = THROTTLED.call(
            lambda: agent.get_knowledge_base(knowledgeBaseId=own)["knowledgeBase"], retry_on=_is_throttled
        )
    except (BotoCoreError, ClientError) as error:
        if _is_throttled(error):
            raise ThrottledError(f"GetKnowledgeBase failed: {public_reason(error)}; {meaning(error)[1]}") from error
        LOGGER.warning(
            "The vector store of the knowledge base %s is not known, as GetKnowledgeBase failed: %s. Set VECTOR_STORE,"
            " or allow bedrock:GetKnowledgeBase to the process's role; %s",
            own,
            public_reason(error),
            _LOST,
        )
        return OTHER_STORE
    if base.get("knowledgeBaseConfiguration", {}).get("type") == MANAGED:
        return MANAGED
    kind = base.get("storageConfiguration", {}).get("type")
    return str(kind) if kind in STORE_RULES else OTHER_STORE


def _is_throttled(error: Exception) -> bool:
    return meaning(error)[0] is ThrottledError
