"""The settings in force, and where each comes from."""

import json
from typing import Any

import pytest

from ragstack_common.settings.ingestion import SET_BY_STACKS
from tests.ragstack_common.services.conftest import Call

PATH = "/api/settings"


def listed(call: Call) -> dict[str, Any]:
    status, answer = call("GET", PATH)
    assert status == 200, answer
    found = {each["name"]: each for each in answer["settings"]}
    assert len(found) == len(answer["settings"])
    return found


def test_settings_that_nobody_chose_have_their_defaults(call: Call) -> None:
    found = listed(call)

    assert (found["QUESTIONS"]["value"], found["QUESTIONS"]["origin"]) == ("false", "default")
    assert (found["ANSWER_MODEL"]["value"], found["ANSWER_MODEL"]["default"]) == (None, None)
    assert found["ANSWER_MAX_TOKENS"]["value"] == found["ANSWER_MAX_TOKENS"]["default"] == "1024"
    assert found["OTEL_EXPORTER_OTLP_HEADERS"]["value"] is None
    assert found["ANSWER_MAX_TOKENS"]["description"] == "longest answer, in tokens"


def test_defaults_are_as_one_would_write_them_and_descriptions_have_no_links(call: Call) -> None:
    found = listed(call)

    assert json.loads(found["RERANKING_WEIGHTS"]["value"])["phrase"] == 0.5
    assert found["RERANKING_WEIGHTS"]["description"] == "weights of the lexical reranker"
    assert not [name for name, each in found.items() if "](" in (each["description"] or "")]


def test_each_setting_says_where_it_comes_from(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {
        "context": {"ANSWER_MAX_TOKENS": "2000", "auth": "oidc,iam"},
        "settings file": {"SEARCH_K": "15"},
        "target": {"SNAPSHOT_DELAY_SECONDS": "1"},
    }
    monkeypatch.setenv("SETTINGS_IN_FORCE", json.dumps(chosen))
    monkeypatch.setenv("UPLOAD_SECONDS", "60")

    found = listed(call)

    assert [(name, each["value"], each["origin"]) for name, each in found.items() if each["origin"] != "default"] == [
        ("auth", "oidc,iam", "context"),
        ("SEARCH_K", "15", "settings file"),
        ("ANSWER_MAX_TOKENS", "2000", "context"),
        ("SNAPSHOT_DELAY_SECONDS", "1", "target"),
        ("UPLOAD_SECONDS", "60", "environment"),
    ]
    assert found["ANSWER_MAX_TOKENS"]["default"] == "1024"


def test_names_of_resources_and_keys_are_not_listed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEYS", '{"id": "search"}')

    assert not SET_BY_STACKS & listed(call).keys()


def test_values_that_may_have_a_secret_are_hidden(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = "OTEL_EXPORTER_OTLP_HEADERS"
    monkeypatch.setenv("SETTINGS_IN_FORCE", json.dumps({"context": {headers: "authorization=secret"}}))
    monkeypatch.setenv("MILVUS_PASSWORD", "secret")
    monkeypatch.setenv("RETRIEVAL_ENGINE_CONFIG", '{"password": "secret"}')

    status, answer = call("GET", PATH)

    assert status == 200
    assert "secret" not in json.dumps([each["value"] for each in answer["settings"]])
    assert next(each for each in answer["settings"] if each["name"] == headers)["value"] == "(hidden)"
