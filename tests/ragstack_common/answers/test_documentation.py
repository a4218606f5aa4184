"""docs/ANSWERS.md matches the code."""

import json
import re
from pathlib import Path

from ragstack_common.answers.answer import Quotation, Sentence, Source
from ragstack_common.api.ask_models import EVENTS, AskRequest, AskResponse

PAGE = (Path(__file__).parents[3] / "docs" / "ANSWERS.md").read_text(encoding="utf-8")


def first_column(header: str) -> list[str]:
    lines = PAGE[PAGE.index(f"| {header} |") :].splitlines()[2:]
    rows = lines[: next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return [re.findall(r"`([^`]+)`", row)[0] for row in rows]


def test_exactly_the_members_of_a_question_are_documented() -> None:
    assert set(first_column("ask member")) == AskRequest.model_fields.keys()


def test_the_events_are_documented_in_their_order() -> None:
    assert first_column("event") == list(EVENTS)


def test_the_example_of_a_response_has_members_and_offsets_that_are_right() -> None:
    (example,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL))
    (sentence,), (source,) = example["sentences"], example["sources"]

    assert example.keys() <= AskResponse.model_fields.keys()
    assert sentence.keys() == Sentence.model_fields.keys()
    assert sentence["quotations"][0].keys() == Quotation.model_fields.keys()
    assert source.keys() <= Source.model_fields.keys()
    assert example["answer"][sentence["start"] : sentence["end"]] == example["answer"]
    quoted = source["quoted"][0]
    assert source["content"][quoted["start"] : quoted["end"]] == sentence["quotations"][0]["text"]
