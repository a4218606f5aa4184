"""The fixtures that other projects test with, in runs of pytest of their own."""

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from local_bedrock import pytest_plugin

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("nested pytest")]

USE_IT = 'pytest_plugins = ["local_bedrock.pytest_plugin"]\n'
PROJECT = Path(__file__).parents[2]

WITH_DEFAULTS = {
    "its_own": """
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
    "texts": """
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
    "failing": """
        import pytest
        from local_bedrock.pytest_plugin import NotIndexedError

        def test_it(knowledge_base):
            with pytest.raises(NotIndexedError, match="empty is FAILED: ."):
                knowledge_base.add({"empty": " "})
        """,
    "deleting": """
        def test_it(knowledge_base):
            knowledge_base.client("bedrock-agent").delete_knowledge_base(knowledgeBaseId=knowledge_base.id)
        """,
    "account": """
        import os

        def test_it(knowledge_base):
            assert os.environ["AWS_PROFILE"] == "production"
            knowledge_base.add("A heron waits.")
        """,
}
"""Projects' test files by their names. All of them run in one pytest, as starting it takes longer than they do."""
ACCOUNT = {"AWS_PROFILE": "production", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}

Outcomes = dict[str, list[str]]


def run(folder: Path, files: dict[str, str], conftest: str = "", **environment: str) -> Outcomes:
    """Run pytest in a process of its own; what became of the tests of each file: passed, failure, error or skipped."""
    (folder / "conftest.py").write_text(textwrap.dedent(conftest))
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(textwrap.dedent(text))
    report = folder / "report.xml"
    # Without the plugins of this project's own tests, which others need not have.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--rootdir={folder}"]
    done = subprocess.run(
        [*command, f"--junitxml={report}", str(folder)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.is_file(), done.stdout + done.stderr
    outcomes: Outcomes = {name: [] for name in files}
    for case in ET.parse(report).iter("testcase"):
        name = case.attrib["classname"].removeprefix("test_")
        outcomes[name].append(case[0].tag if len(case) else "passed")
    assert (done.returncode == 0) == all(set(found) == {"passed"} for found in outcomes.values()), done.stdout
    return outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What became of the tests with the options as by default, and settings of a user who has an account."""
    text = inspect.getdoc(pytest_plugin)
    assert text is not None
    example = text.split("::\n", 1)[1].split("\nFixtures:")[0]
    return run(tmp_path_factory.mktemp("projects"), {**WITH_DEFAULTS, "example": example}, USE_IT, **ACCOUNT)


def test_the_example_of_its_documentation_runs(outcomes: Outcomes) -> None:
    assert outcomes["example"] == ["passed"]


def test_every_test_has_a_knowledge_base_of_its_own(outcomes: Outcomes) -> None:
    assert outcomes["its_own"] == ["passed"] * 3


def test_texts_are_added_alone_in_lists_or_by_id_with_attributes(outcomes: Outcomes) -> None:
    assert outcomes["texts"] == ["passed"]


def test_a_document_that_fails_says_why(outcomes: Outcomes) -> None:
    assert outcomes["failing"] == ["passed"]


def test_the_options_are_those_that_the_project_gives(tmp_path: Path) -> None:
    throttled = """
        import pytest
        from botocore.exceptions import ClientError

        def test_it_is_throttled(knowledge_base):
            agent = knowledge_base.client("bedrock-agent")
            with pytest.raises(ClientError, match="ThrottlingException"):
                for _ in range(20):
                    agent.list_ingestion_jobs(**knowledge_base.ids)
        """
    options = """
        import pytest
        from local_bedrock.limits.quotas import Quotas

        @pytest.fixture(scope="session")
        def bedrock_options():
            return {"quotas": Quotas().with_settings(["list_ingestion_jobs_per_second=0.001"])}
        """

    assert run(tmp_path, {"throttled": throttled}, USE_IT + textwrap.dedent(options)) == {"throttled": ["passed"]}


def test_a_test_that_deletes_its_knowledge_base_ends_well(outcomes: Outcomes) -> None:
    assert outcomes["deleting"] == ["passed"]


def test_no_setting_of_the_user_sends_a_test_to_an_account(outcomes: Outcomes) -> None:
    assert outcomes["account"] == ["passed"]


def test_the_plugin_alone_imports_no_heavy_package() -> None:
    heavy = ("boto3", "botocore", "numpy", "apsw", "starlette", "uvicorn")
    code = f"import local_bedrock.pytest_plugin, sys; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
