"""Settings from the environment, good and bad."""

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from ragstack_common.config import QuerySettings
from ragstack_common.errors import ConfigurationError
from ragstack_common.ingestion.settings import IngestionSettings

QUERY = {"KNOWLEDGE_BASE_ID": "KBKBKBKBK1"}
MANY = ",".join(f"corpus{n}" for n in range(21))
INGESTION = {
    "KNOWLEDGE_BASE_ID": "KBKBKBKBK1",
    "DATA_SOURCE_ID": "DSDSDSDSD1",
    "REGISTRY_TABLE": "registry",
    "INGESTION_QUEUE_URL": "https://sqs/events",
    "STATUS_QUEUE_URL": "https://sqs/status",
    "DEAD_LETTER_QUEUE_URL": "https://sqs/dead",
}


def test_a_query_needs_a_knowledge_base_and_nothing_else() -> None:
    assert QuerySettings.from_env(QUERY) == QuerySettings(
        "KBKBKBKBK1",
        data_source_id=None,
        timeout_seconds=5.0,
        multislice_enabled=True,
        max_slices=3,
        filtered_score_boost=1.25,
        search_type=None,
        retrieval_engine="bedrock",
        retrieval_engine_config=None,
        rerank=None,
        corpora=(),
        per_corpus=200,
        single_corpus=500,
        search_k=10,
    )


def test_another_engine_needs_no_knowledge_base() -> None:
    settings = QuerySettings.from_env({"RETRIEVAL_ENGINE": "chroma", "RETRIEVAL_ENGINE_CONFIG": '{"path": "/data"}'})

    assert (settings.knowledge_base_id, settings.retrieval_engine) == ("", "chroma")
    assert settings.retrieval_engine_config == {"path": "/data"}


def test_every_setting_of_a_query_can_be_given() -> None:
    settings = QuerySettings.from_env(
        {
            **QUERY,
            "DATA_SOURCE_ID": "DSDSDSDSD1",
            "RETRIEVAL_TIMEOUT_SECONDS": "2.5",
            "MULTISLICE_ENABLED": "false",
            "MULTISLICE_MAX_SLICES": "2",
            "FILTERED_SCORE_BOOST": "1.4",
            "SEARCH_TYPE": "hybrid",
            "RETRIEVAL_ENGINE": "bedrock",
            "RETRIEVAL_ENGINE_CONFIG": '{"enabled": true}',
            "RERANK": "Lexical",
            "MULTI_CORPUS_METADATA": "legal_us, legal_uk,legislation_nz",
            "LARGE_RETRIEVAL_SIZE_ALL_CORPUS": "300",
            "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS": "600",
            "SEARCH_K": "15",
        }
    )

    assert settings == QuerySettings(
        "KBKBKBKBK1",
        data_source_id="DSDSDSDSD1",
        timeout_seconds=2.5,
        multislice_enabled=False,
        max_slices=2,
        filtered_score_boost=1.4,
        search_type="HYBRID",
        retrieval_engine="bedrock",
        retrieval_engine_config={"enabled": True},
        rerank="lexical",
        corpora=("legal_us", "legal_uk", "legislation_nz"),
        per_corpus=300,
        single_corpus=600,
        search_k=15,
    )


def test_an_ingestion_needs_a_knowledge_base_a_data_source_a_registry_and_its_queues() -> None:
    settings = IngestionSettings.from_env(INGESTION)

    assert (settings.knowledge_base_id, settings.data_source_id) == ("KBKBKBKBK1", "DSDSDSDSD1")
    assert (settings.registry_table, settings.vector_store) == ("registry", "OTHER")
    assert (settings.ingestion_queue_url, settings.status_queue_url) == ("https://sqs/events", "https://sqs/status")
    assert (settings.dead_letter_queue_url, settings.documents_per_call) == ("https://sqs/dead", 10)


def test_every_figure_of_an_ingestion_can_be_given() -> None:
    settings = IngestionSettings.from_env(
        {
            **INGESTION,
            "INGESTION_MAX_RECEIVES": "3",
            "INGESTION_MAX_RETRIES": "0",
            "INGESTION_BASE_DELAY_SECONDS": "0",
            "INGESTION_DOCUMENTS_PER_CALL": "25",
            "INGESTION_MAX_ATTEMPTS": "7",
            "INGESTION_CALLS_PER_SECOND": "2.5",
            "STATUS_FIRST_DELAY_SECONDS": "0",
            "STATUS_GIVE_UP_SECONDS": "60",
            "VECTOR_STORE": "s3_vectors",
            "EVENT_BUS_NAME": "documents",
        }
    )

    assert (settings.max_attempts, settings.calls_per_second) == (7, 2.5)
    assert (settings.first_delay_seconds, settings.give_up_seconds) == (0, 60)
    assert (settings.vector_store, settings.event_bus_name) == ("S3_VECTORS", "documents")
    assert settings.max_receives == 3
    assert settings.max_retries == 0
    assert settings.base_delay_seconds == 0
    assert settings.documents_per_call == 25


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_counts_as_absent(empty: str) -> None:
    optional = dict.fromkeys(
        ["DATA_SOURCE_ID", "RETRIEVAL_TIMEOUT_SECONDS", "MULTISLICE_ENABLED", "SEARCH_TYPE", "FILTERED_SCORE_BOOST"],
        empty,
    )

    assert QuerySettings.from_env({**QUERY, **optional}) == QuerySettings.from_env(QUERY)


@pytest.mark.parametrize("kind", [QuerySettings, IngestionSettings])
@pytest.mark.parametrize("value", [None, "", " "])
def test_a_missing_knowledge_base_is_named(kind: Any, value: str | None) -> None:
    env = {**INGESTION, "KNOWLEDGE_BASE_ID": value} if value is not None else {}

    with pytest.raises(ConfigurationError, match="KNOWLEDGE_BASE_ID is not set"):
        kind.from_env(env)


@pytest.mark.parametrize(
    "name",
    ["DATA_SOURCE_ID", "REGISTRY_TABLE", "INGESTION_QUEUE_URL", "STATUS_QUEUE_URL", "DEAD_LETTER_QUEUE_URL"],
)
def test_what_only_an_ingestion_needs_is_named_too(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is not set"):
        IngestionSettings.from_env({key: value for key, value in INGESTION.items() if key != name})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((QuerySettings, "RETRIEVAL_TIMEOUT_SECONDS", value) for value in ("0", "-1", "soon", "nan", "inf", "1,5")),
        *((QuerySettings, "MULTISLICE_ENABLED", value) for value in ("on?", "2", "none")),
        *((QuerySettings, "MULTISLICE_MAX_SLICES", value) for value in ("0", "1.5", "many")),
        *((QuerySettings, "FILTERED_SCORE_BOOST", value) for value in ("0", "-1", "nan", "inf", "x")),
        *((QuerySettings, "SEARCH_TYPE", value) for value in ("BM25", "KEYWORD")),
        *((QuerySettings, "RETRIEVAL_ENGINE_CONFIG", value) for value in ("path", "[]", "7", '{"path":')),
        *((QuerySettings, "RERANK", value) for value in ("true", "cohere")),
        *((QuerySettings, "MULTI_CORPUS_METADATA", value) for value in ("a,,b", "a,b,", "a, a", "a,all", MANY)),
        *((QuerySettings, "LARGE_RETRIEVAL_SIZE_ALL_CORPUS", value) for value in ("0", "many")),
        *((QuerySettings, "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS", value) for value in ("-1", "1.5")),
        *((QuerySettings, "SEARCH_K", value) for value in ("0", "101", "ten")),
        *((IngestionSettings, "INGESTION_MAX_RECEIVES", value) for value in ("0", "x")),
        *((IngestionSettings, "INGESTION_MAX_RETRIES", value) for value in ("-1", "1.5")),
        *((IngestionSettings, "INGESTION_BASE_DELAY_SECONDS", value) for value in ("-0.1", "nan", "inf")),
        *((IngestionSettings, "INGESTION_DOCUMENTS_PER_CALL", value) for value in ("0", "ten")),
        *((IngestionSettings, "INGESTION_MAX_ATTEMPTS", value) for value in ("0", "few")),
        *((IngestionSettings, "INGESTION_CALLS_PER_SECOND", value) for value in ("0", "-5", "inf")),
        *((IngestionSettings, "STATUS_FIRST_DELAY_SECONDS", value) for value in ("-1", "soon")),
        *((IngestionSettings, "STATUS_GIVE_UP_SECONDS", value) for value in ("0", "6h")),
        *((IngestionSettings, "VECTOR_STORE", value) for value in ("OPENSEARCH", "1")),
    ],
)
def test_an_unusable_value_is_named_with_what_would_be_right(kind: Any, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"{name} is unusable: ")):
        kind.from_env({**INGESTION, name: value})


def test_settings_cannot_be_changed() -> None:
    settings = QuerySettings.from_env(QUERY)

    with pytest.raises(FrozenInstanceError):
        settings.timeout_seconds = 1.0  # type: ignore[misc]
