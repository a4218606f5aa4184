"""``ragstack facets``: pages of the API, as one list."""

import json

import pytest

from ragstack_common.registry.records import Observation, Status
from ragstack_local.commands import query as command
from tests.ragstack_common.services.conftest import Aws
from tests.ragstack_local.commands.conftest import Run


@pytest.fixture
def topics(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents about travel, and one about each of three others, with two values on a page."""
    monkeypatch.setattr(command, "VALUES_PER_PAGE", 2)
    for number, topic in enumerate(("travel", "leave", "training", "travel", "pay")):
        aws.record(f"{number}.md", Status.INDEXED, Observation(etag='"e"', attributes={"topic": topic, "year": 2026}))


@pytest.mark.usefixtures("topics")
def test_facets_reads_every_page(run: Run) -> None:
    shown = run("facets", "--limit", "10").stdout
    answer = json.loads(run("facets", "topic", "--json").stdout)

    assert shown.splitlines() == [
        "5 documents can be searched",
        *("topic", "      2  travel", "      1  leave", "      1  pay", "      1  training"),
        *("year", "      5  2026"),
    ]
    assert [each["value"] for facet in answer["facets"] for each in facet["values"]] == [
        *("leave", "pay", "training", "travel"),
    ]
    assert answer["next_token"] is None


@pytest.mark.usefixtures("topics")
def test_facets_says_that_there_are_more_values(run: Run) -> None:
    shown = run("facets", "--limit", "3").stdout

    assert shown.count("  1  ") + shown.count("  2  ") == 3
    assert "There are more than 3 values: raise --limit" in shown


@pytest.mark.usefixtures("topics")
def test_facets_finds_the_values_that_begin_with_a_text(run: Run) -> None:
    found = run("facets", "topic", "--prefix", "tra").stdout
    nothing = run("facets", "topic", "--prefix", "x")
    wrong = run("facets", "--prefix", "tra")

    assert found.splitlines() == ["5 documents can be searched", "topic", "      2  travel", "      1  training"]
    assert (nothing.exit_code, "No document has a value of topic that begins with x" in nothing.stdout) == (1, True)
    assert (wrong.exit_code, "ragstack facets KEY --prefix TEXT" in wrong.output) == (2, True)
