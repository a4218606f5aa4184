"""The report of a run: JSON for programs, Markdown for people, without names, ids or content of the account."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragstack_common.core.reporting import redacted
from ragstack_local.certify.check import Json, Outcome, Verdict
from ragstack_local.certify.documents import ANIMALS

_HEADINGS: Final = {
    Verdict.DIFFERS: "What differs",
    Verdict.NOT_TRIED: "What was not tried",
    Verdict.MATCHES: "What matches",
}

_NAMES: Final = re.compile(r"s3://\S+|ragstack-?certify[\w-]+", re.IGNORECASE)
"""Of objects and of resources of a run, besides what ``redacted`` replaces."""


FILTERS_NOTE: Final = (
    'In checks of filters, a value such as `"ac"` has a letter for each document that was found. Their attributes: '
    + "; ".join(f"{letter} `{json.dumps(attributes)}`" for letter, attributes in sorted(ANIMALS.items()))
    + ". In checks of files, numbers count the passages that were found."
)
"""What people must know to read the values of these checks."""


@dataclass(frozen=True)
class Report:
    """The outcomes of a run, and where and with what it ran.

    Attributes:
        target: ``AWS`` or ``local stack``.
        started: The date and the minute, in UTC.
        versions: Versions by the names of packages.
        calls: Numbers of calls by ``SERVICE.OPERATION``.
        costs: Dollars by their parts; empty for the local stack.
    """

    target: str
    region: str
    started: str
    minutes: float
    versions: Mapping[str, str]
    outcomes: Sequence[Outcome]
    calls: Mapping[str, int]
    costs: Mapping[str, float]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """The number of checks by their verdict."""
        found = Counter(outcome.verdict for outcome in self.outcomes)
        return {verdict: found[verdict] for verdict in Verdict}

    def to_json(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "target": self.target,
            "region": self.region,
            "started": self.started,
            "minutes": self.minutes,
            "versions": dict(self.versions),
            "counts": {str(verdict): count for verdict, count in self.counts.items()},
            "checks": [_described(outcome) for outcome in self.outcomes],
            "calls": dict(sorted(self.calls.items())),
            "costs": dict(self.costs),
        }

    def to_json_text(self) -> str:
        """Return the report for programs as text."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)

    def to_markdown(self) -> str:
        """Return the report for people."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [
            f"# Certificate: {self.target}, {self.region}, {self.started}",
            "",
            f"{len(self.outcomes)} checks in {self.minutes:g} minutes: {counts}. {versions}.",
        ]
        if self.costs:
            parts = ", ".join(f"{name} ${dollars:.2f}" for name, dollars in self.costs.items())
            lines += ["", f"Estimated cost: ${sum(self.costs.values()):.2f} ({parts})."]
        if any(outcome.check.topic.endswith("filters") for outcome in self.outcomes):
            lines += ["", FILTERS_NOTE]
        for verdict, heading in _HEADINGS.items():
            found = [outcome for outcome in self.outcomes if outcome.verdict is verdict]
            if found:
                lines += ["", f"## {heading}", "", *_table(verdict, found)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write both forms, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        markdown, data = folder / f"{name}.md", folder / f"{name}.json"
        markdown.write_text(self.to_markdown(), encoding="utf-8")
        data.write_text(self.to_json_text() + "\n", encoding="utf-8")
        return markdown, data


def _described(outcome: Outcome) -> dict[str, Any]:
    check = outcome.check
    return {
        "name": check.name,
        "topic": check.topic,
        "belief": check.belief,
        "source": str(check.source),
        "used_by": check.used_by,
        "held_in": check.held_in,
        "verdict": str(outcome.verdict),
        "expected": check.expected,
        "observed": _anonymous(outcome.observed),
        "reason": _anonymous(outcome.reason),
        "seconds": outcome.seconds,
    }


def _anonymous(value: Json) -> Json:
    """Replace ids, addresses and names that an observation has against its rule, such as those in an error of AWS."""
    if isinstance(value, str):
        return redacted(_NAMES.sub("[name]", value))
    if isinstance(value, Mapping):
        return {_anonymous(key): _anonymous(each) for key, each in value.items()}
    return [_anonymous(each) for each in value] if isinstance(value, list) else value


def _table(verdict: Verdict, outcomes: Sequence[Outcome]) -> list[str]:
    if verdict is Verdict.DIFFERS:
        lines = ["| check | belief | expected | observed | used by | held in |", "|---|---|---|---|---|---|"]
        for each in outcomes:
            check = each.check
            values = (_code(check.expected), _code(_anonymous(each.observed)))
            lines.append(_row(check.name, check.belief, *values, check.used_by, check.held_in))
        return lines
    if verdict is Verdict.NOT_TRIED:
        lines = ["| check | belief | why not | used by |", "|---|---|---|---|"]
        return lines + [
            _row(each.check.name, each.check.belief, _anonymous(each.reason), each.check.used_by) for each in outcomes
        ]
    lines = ["| check | belief | observed | source | used by |", "|---|---|---|---|---|"]
    for each in outcomes:
        check = each.check
        lines.append(_row(check.name, check.belief, _code(_anonymous(each.observed)), check.source, check.used_by))
    return lines


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _code(value: Json) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"
