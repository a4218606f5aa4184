"""The fixtures that other projects test with, in runs of pytest of their own."""

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ragstack_local import pytest_plugin

pytest_plugins = ["pytester"]

USE_IT = 'pytest_plugins = ["ragstack_local.pytest_plugin"]\n'


def run(pytester: pytest.Pytester, test: str, conftest: str = "") -> pytest.RunResult:
    pytester.makeconftest(USE_IT + textwrap.dedent(conftest))
    pytester.makepyfile(textwrap.dedent(test))
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q")


def test_the_example_of_its_documentation_runs(pytester: pytest.Pytester) -> None:
    text = inspect.getdoc(pytest_plugin)
    assert text is not None
    example = text.split("::\n", 1)[1].split("\nFixtures:")[0]

    pytester.makepyfile(textwrap.dedent(example))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)
    assert len(example.strip().splitlines()) <= 10


def test_every_test_has_a_knowledge_base_of_its_own(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("number", range(3))
        def test_it_is_empty(knowledge_base, number):
            agent = knowledge_base.client("bedrock-agent")
            assert not agent.list_knowledge_base_documents(**knowledge_base.ids)["documentDetails"]
            assert knowledge_base.id not in seen
            seen.append(knowledge_base.id)
            knowledge_base.add(f"text {number}")
        """,
    )

    result.assert_outcomes(passed=3)


def test_texts_are_added_alone_in_lists_or_by_id_with_attributes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_all_of_them(knowledge_base):
            one = knowledge_base.add("A heron waits.", {"bird": True})
            several = knowledge_base.add([f"Text {number}." for number in range(25)], {"year": 2024, "tags": ["a"]})
            named = knowledge_base.add({"wren": "A wren sings."}, {"topic": "song"})
            runtime = knowledge_base.client("bedrock-agent-runtime")

            found = runtime.retrieve(
                knowledgeBaseId=knowledge_base.id,
                retrievalQuery={"text": "bird"},
                retrievalConfiguration={
                    "vectorSearchConfiguration": {"filter": {"equals": {"key": "topic", "value": "song"}}}
                },
            )["retrievalResults"]

            assert len(one) == 1 and len(set(several)) == 25 and named == ["wren"]
            assert [result["content"]["text"] for result in found] == ["A wren sings."]
        """,
    )

    result.assert_outcomes(passed=1)


def test_a_document_that_fails_says_why(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        from ragstack_local.pytest_plugin import NotIndexedError

        def test_it(knowledge_base):
            with pytest.raises(NotIndexedError, match="empty is FAILED: ."):
                knowledge_base.add({"empty": " "})
        """,
    )

    result.assert_outcomes(passed=1)


def test_the_options_are_those_that_the_project_gives(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        from botocore.exceptions import ClientError

        def test_it_is_throttled(knowledge_base):
            agent = knowledge_base.client("bedrock-agent")
            with pytest.raises(ClientError, match="ThrottlingException"):
                for _ in range(20):
                    agent.list_ingestion_jobs(**knowledge_base.ids)
        """,
        """
        import pytest
        from ragstack_local.bedrock.limits.quotas import Quotas

        @pytest.fixture(scope="session")
        def bedrock_options():
            return {"quotas": Quotas().with_settings(["list_ingestion_jobs_per_second=0.001"])}
        """,
    )

    result.assert_outcomes(passed=1)


def test_a_test_that_deletes_its_knowledge_base_ends_well(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(knowledge_base):
            knowledge_base.client("bedrock-agent").delete_knowledge_base(knowledgeBaseId=knowledge_base.id)
        """,
    )

    result.assert_outcomes(passed=1)


def test_no_setting_of_the_user_sends_a_test_to_an_account(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    result = run(pytester, "def test_it(knowledge_base):\n    knowledge_base.add('A heron waits.')")

    result.assert_outcomes(passed=1)


def test_a_run_that_asks_for_nothing_loads_nothing(tmp_path: Path) -> None:
    heavy = ("boto3", "botocore", "numpy", "apsw", "starlette", "uvicorn")
    code = f"import ragstack_local.pytest_plugin, sys; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
