"""Context values that become environment variables of functions, of the same name in upper case."""

from collections.abc import Mapping
from typing import Final

from infra.engine import EVERY_COLLECTION, collections_of
from infra.option_checks import Check, as_written, checked, matching, number, one_of
from ragstack_common import config

LONGEST_RETRIEVAL_SECONDS: Final = 24.0
"""What leaves the function time to answer within API Gateway's 29 seconds."""

MOST_CANDIDATES: Final = 1_000
"""Ten pages of Retrieve, one after the other: more would not come before the deadline."""

LONGEST_DELAY_SECONDS: Final = 900
"""Source: SQS API reference, SendMessage, DelaySeconds."""

LONGEST_FOLLOWING_SECONDS: Final = 3 * 24 * 3600
"""Each question is a new message, so that the queue's retention sets no limit."""

LONGEST_SETTLING_SECONDS: Final = 3600
"""An event that is an hour late is lost, as far as anybody can tell."""

LARGEST_DOCUMENT_BYTES: Final = 50 * 1024 * 1024
"""What the knowledge base reads of one file. Source: Bedrock user guide, prerequisites of knowledge base data."""

LONGEST_UPLOAD_SECONDS: Final = 3600
"""An upload is signed with the function's own credentials, which may end soon after."""


def variables(values: Mapping[str, str], checks: Mapping[str, Check]) -> dict[str, str]:
    """Collect those of *values* that *checks* are for.

    Raises:
        OptionError: A value is unusable.
    """
    found = {variable: checked(values, variable.lower(), check) for variable, check in checks.items()}
    return {variable: text for variable, text in found.items() if text is not None}


def _collections(text: str) -> str:
    if text == EVERY_COLLECTION:
        raise ValueError("name the collections: the function gets rights to those that are named")
    if not collections_of(text):
        raise ValueError("name a collection")
    return text


_engine_name: Final = matching(r"[a-z][a-z0-9_]*", "write the name of an engine, such as bedrock")

QUERY_CHECKS: Final[Mapping[str, Check]] = {
    config.RETRIEVAL_TIMEOUT_SECONDS: number(0.1, LONGEST_RETRIEVAL_SECONDS),
    config.MULTISLICE_ENABLED: one_of("true", "false"),
    config.MULTISLICE_MAX_SLICES: number(1, 10, whole=True),
    config.FILTERED_SCORE_BOOST: number(0.01, 100),
    config.SEARCH_TYPE: one_of(*config.SEARCH_TYPES),
    config.RETRIEVAL_ENGINE: _engine_name,
    config.RETRIEVAL_ENGINE_CONFIG: as_written(config.json_object),
    config.RERANK: one_of(*config.RERANKERS),
    config.MULTI_CORPUS_METADATA: as_written(config.corpus_names),
    config.LARGE_RETRIEVAL_SIZE_ALL_CORPUS: number(1, MOST_CANDIDATES, whole=True),
    config.LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS: number(1, MOST_CANDIDATES, whole=True),
    config.SEARCH_K: number(1, config.MAX_RESULTS, whole=True),
    config.RETRIEVER_TOOL_ENGINE: _engine_name,
    config.RETRIEVER_TOOL_ENGINE_CONFIG: as_written(config.json_object),
    config.RETRIEVER_TOOL_COLLECTIONS: _collections,
    config.RETRIEVER_TOOL_EMBEDDING: as_written(str),
}

INGESTION_CHECKS: Final[Mapping[str, Check]] = {
    config.INGESTION_MAX_RECEIVES: number(1, 100, whole=True),
    config.INGESTION_MAX_RETRIES: number(0, 10, whole=True),
    config.INGESTION_MAX_ATTEMPTS: number(1, 100, whole=True),
    config.INGESTION_BASE_DELAY_SECONDS: number(0, 30),
    config.INGESTION_DOCUMENTS_PER_CALL: number(1, 25, whole=True),
    config.INGESTION_CALLS_PER_SECOND: number(0.1, 1_000),
    config.STATUS_FIRST_DELAY_SECONDS: number(0, LONGEST_DELAY_SECONDS),
    config.STATUS_GIVE_UP_SECONDS: number(1, LONGEST_FOLLOWING_SECONDS),
}

RECONCILE_CHECKS: Final[Mapping[str, Check]] = {
    config.RECONCILE_SETTLE_SECONDS: number(0, LONGEST_SETTLING_SECONDS),
    config.RECONCILE_POLL_SECONDS: number(0, LONGEST_DELAY_SECONDS),
}

UPLOAD_CHECKS: Final[Mapping[str, Check]] = {
    config.UPLOAD_MAX_BYTES: number(1, LARGEST_DOCUMENT_BYTES, whole=True),
    config.UPLOAD_SECONDS: number(1, LONGEST_UPLOAD_SECONDS, whole=True),
}
