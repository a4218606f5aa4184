"""Settings from the environment, good and bad."""

from pathlib import Path

import pytest

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.base import read_settings
from ragstack_common.settings.ingestion import IngestionSettings
from ragstack_common.settings.knowledge import KnowledgeSettings
from ragstack_common.settings.names import NO_RERANKER, REQUEST_RERANKERS
from ragstack_common.settings.search import QuerySettings

QUERY = {"KNOWLEDGE_BASE_ID": "KBKBKBKBK1"}
INGESTION = {
    "KNOWLEDGE_BASE_ID": "KBKBKBKBK1",
    "DATA_SOURCE_ID": "DSDSDSDSD1",
    "REGISTRY_TABLE": "registry",
    "INGESTION_QUEUE_URL": "https://sqs/events",
    "STATUS_QUEUE_URL": "https://sqs/status",
    "CONVERSION_QUEUE_URL": "https://sqs/conversions",
    "LARGE_CONVERSION_QUEUE_URL": "https://sqs/large",
    "RECEIPTS_QUEUE_URL": "https://sqs/receipts",
    "JOBS_QUEUE_URL": "https://sqs/jobs",
    "DEAD_LETTER_QUEUE_URL": "https://sqs/dead",
}


def test_every_kind_of_value_is_read() -> None:
    settings = QuerySettings.from_env(
        {
            **QUERY,
            "RETRIEVAL_TIMEOUT_SECONDS": "2.5",
            "MULTISLICE_ENABLED": "false",
            "MULTISLICE_MAX_SLICES": " 2 ",
            "SEARCH_TYPE": "hybrid",
            "RETRIEVAL_ENGINE_CONFIG": '{"enabled": true}',
            "RERANK": "Lexical",
            "MULTI_CORPUS_METADATA": "legal_us, legal_uk,legislation_nz",
        }
    )

    assert settings == QuerySettings(
        knowledge_base_id="KBKBKBKBK1",
        timeout_seconds=2.5,
        multislice_enabled=False,
        max_slices=2,
        search_type="HYBRID",
        retrieval_engine_config={"enabled": True},
        rerank="lexical",
        corpora=("legal_us", "legal_uk", "legislation_nz"),
    )


def test_the_first_of_two_names_of_a_variable_wins() -> None:
    settings = KnowledgeSettings.from_env({"ATLAS_COLLECTION_NAME": "a", "CHROMA_COLLECTION_NAME": "b"})

    assert settings.collection_name == "a"
    assert KnowledgeSettings.from_env({"CHROMA_COLLECTION_NAME": "b"}).collection_name == "b"


def test_a_blank_variable_counts_as_absent() -> None:
    blank = {"DATA_SOURCE_ID": "", "RETRIEVAL_TIMEOUT_SECONDS": "  ", "SEARCH_TYPE": ""}

    assert QuerySettings.from_env({**QUERY, **blank}) == QuerySettings.from_env(QUERY)


@pytest.mark.parametrize("name", INGESTION)
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name} is not set$"):
        IngestionSettings.from_env({**INGESTION, name: " "})


def test_a_query_without_a_knowledge_base_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^KNOWLEDGE_BASE_ID is not set$"):
        QuerySettings.from_env({})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            (("RETRIEVAL_TIMEOUT_SECONDS", value), "it must be a number from 0.1 to 24")
            for value in ("0", "-1", "soon", "nan", "inf", "1,5")
        ),
        (("MULTISLICE_ENABLED", "on?"), "it must be true or false"),
        (("MULTISLICE_MAX_SLICES", "1.5"), "it must be a whole number from 1 to 10"),
        (("SEARCH_TYPE", "KEYWORD"), "it must be HYBRID or SEMANTIC"),
        (("RERANK", "cohere"), f"it must be {' or '.join((*REQUEST_RERANKERS, NO_RERANKER))}"),
        (("MULTI_CORPUS_METADATA", "a,,b"), "names must be separated by one comma each"),
        (("MULTI_CORPUS_METADATA", "a, a"), "each name must occur once"),
        (("MULTI_CORPUS_METADATA", "a,all"), "no corpus can be called all, which means every corpus"),
        (("MULTI_CORPUS_METADATA", ",".join(map(str, range(21)))), "there must be at most 20 names, not 21"),
    ],
)
def test_an_invalid_value_is_named_with_what_is_allowed(given: tuple[str, str], message: str) -> None:
    name, value = given

    with pytest.raises(ConfigurationError) as refused:
        QuerySettings.from_env({**QUERY, name: value})

    assert str(refused.value) == f"{name}={value} is invalid: {message}"


DEEP = '{"a":' * 100_000


@pytest.mark.parametrize("name", ["RETRIEVAL_ENGINE_CONFIG", "RERANKING_WEIGHTS"])
@pytest.mark.parametrize("value", [DEEP, DEEP + "1" + "}" * 100_000, '{"a": "\\u0000"}', '{"a": "\0"}'])
def test_deep_json_and_nul_are_configuration_errors(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s)^{name}.* is invalid: it must be a JSON object with"):
        QuerySettings.from_env({**QUERY, name: value})


@pytest.mark.parametrize(
    ("name", "content"), [("s.json", DEEP), ("s.json", '{"prefix": "\\u0000"}'), ("s.txt", "SEARCH_K=1\0")]
)
def test_a_file_with_deep_json_or_nul_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")

    with pytest.raises(ValueError, match=f"{name} is not a file of settings"):
        read_settings(tmp_path / name)


@pytest.mark.parametrize("value", ["path", "[]", "7", '{"path":'])
def test_a_value_that_may_hold_credentials_is_not_repeated(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^RETRIEVAL_ENGINE_CONFIG is invalid: it must be a JSON object"):
        QuerySettings.from_env({**QUERY, "RETRIEVAL_ENGINE_CONFIG": value})


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        IngestionSettings.from_env({**INGESTION, "REGISTRY_TABLE": "", "INGESTION_MAX_RETRIES": "-1"})

    assert str(refused.value).split("; ") == [
        "REGISTRY_TABLE is not set",
        "INGESTION_MAX_RETRIES=-1 is invalid: it must be a whole number from 0 to 10",
    ]
