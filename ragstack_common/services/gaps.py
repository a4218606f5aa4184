"""Gaps: questions without a good answer, grouped by their words, for those who can add documents.

Each person has one item for each group of questions in the registry's table, which expires after the last question::

    no answer   the answers function, if the setting `questions` allows it
    reported    a person who says that something is missing
    bad         a judgment of an answer

A question can repeat what its asker has read. So only readers who see every label that the asker saw can see it, and
all counts are of the questions that the reader can see.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from ragstack_common.access.budget import DailyBudget
from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.core.errors import GapNotFoundError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.times import iso
from ragstack_common.registry.deletions import delete_items
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.table import EXPIRES_AT, GAP, PARTITION_KEY, SORT_KEY, Item, to_item
from ragstack_common.registry.transactions import if_holds
from ragstack_common.services.gap_models import (
    MAX_COMMENTS,
    MAX_GROUPS,
    MAX_QUESTION_CHARACTERS,
    MAX_READ,
    MAX_READ_CHARACTERS,
    Gap,
    GapChange,
    GapComment,
    GapList,
    GapOutcomes,
    GapReport,
    Outcome,
    ReportedGap,
    State,
)
from ragstack_common.settings.gaps import GapSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_REPORTS_A_DAY: Final = 200
"""Limit of one caller."""

DAY_SECONDS: Final = 86_400
KEPT_SECONDS: Final = 90 * DAY_SECONDS
"""Lifetime of what a person asked in the words of a group, after the last time."""

STATE_KEPT_SECONDS: Final = 365 * DAY_SECONDS

_EVERYTHING: Final = "*"
"""Stands for a caller who sees every document. No label has this name."""


def group_of(question: str) -> str:
    """Return the id of the group of questions with the same words: stemmed, in any order, without stop words."""
    from ragstack_common.text.spelling import normalized  # noqa: PLC0415 - as below
    from ragstack_common.text.words import query_terms  # noqa: PLC0415 - most requests need no words

    words = sorted(query_terms(question)) or [normalized(question)]
    return _digest("\n".join(words))


@dataclass(frozen=True)
class Gaps:
    """Reads and writes gaps. Each method raises RegistryError if the table fails."""

    client: "DynamoDBClient"
    table: str
    guard: Guard
    stores_questions: bool = False
    clock: Callable[[], float] = time.time

    @classmethod
    def from_env(cls, env: Mapping[str, str], client: "DynamoDBClient", table: str, guard: Guard) -> Self:
        """Read the setting from the environment; raises ConfigurationError."""
        return cls(client, table, guard, GapSettings.from_env(env).questions)

    def report(self, caller: Caller, report: GapReport) -> ReportedGap:
        """Add a report of a person, which replaces an earlier one in the same words.

        Raises:
            LimitReachedError: The caller has sent the maximum number of reports today.
        """
        budget = DailyBudget(
            self.client, self.table, MAX_REPORTS_A_DAY, MAX_REPORTS_A_DAY, unit="reports", verb="sent", clock=self.clock
        )
        budget.spend(caller)
        group = self.add(caller, report.question, "reported", comment=report.comment, settings=report.settings)
        return ReportedGap(id=group, question=report.question)

    def add(
        self,
        caller: Caller,
        question: str,
        outcome: Outcome,
        *,
        comment: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> str:
        """Count a question of a caller under an outcome, and return the id of its group."""
        now, group, question = self.clock(), group_of(question), question[:MAX_QUESTION_CHARACTERS]
        with reaching_the_registry():
            labels = self.guard.rules().labels(caller)
            values = {"question": question, "at": now, EXPIRES_AT: int(now) + KEPT_SECONDS}
            if outcome != "no_answer":
                values[outcome] = 1
            if comment is not None:
                values |= {"comment": comment, "comment_at": now, "by": caller.name}
            if settings:
                values["settings"] = json.dumps(settings, ensure_ascii=False)
            added: dict[str, Any] = {"no_answer": {"N": "1"}} if outcome == "no_answer" else {}
            if seen := [_EVERYTHING] if labels is None else sorted(labels):
                added["labels"] = {"SS": seen}
            self._update(_key(group, caller), values, added)
        return group

    def remove_bad(self, caller: Caller, question: str) -> None:
        """Forget that a caller judged the answer to a question as bad."""
        with reaching_the_registry():
            if_holds(
                lambda: self.client.update_item(
                    TableName=self.table,
                    Key=_key(group_of(question), caller),
                    UpdateExpression="REMOVE bad",
                    ConditionExpression="attribute_exists(bad)",
                )
            )

    def erase(self, name: str) -> int:
        """Delete what a caller asked or reported, given their name, in every group; return the number of groups."""
        own = f"#{_digest(name)}"
        with reaching_the_registry():
            keys = query_items(
                self.client,
                self.table,
                f"{PARTITION_KEY} = :gap",
                {":gap": GAP},
                ProjectionExpression=f"{PARTITION_KEY}, {SORT_KEY}",
            )
            found = [key for key in keys if key[SORT_KEY]["S"].endswith(own)]
            delete_items(self.client, self.table, found)
        return len(found)

    def groups(self, caller: Caller) -> GapList:
        """List the gaps that a caller may see: none, if the caller may neither write documents nor operate."""
        found, is_complete = self._read(caller)
        ordered = sorted(found, key=lambda gap: gap.last_at, reverse=True)
        ordered.sort(key=lambda gap: gap.count, reverse=True)
        return GapList(
            groups=ordered[:MAX_GROUPS],
            left_out=max(0, len(ordered) - MAX_GROUPS),
            complete=is_complete,
            stores_questions=self.stores_questions,
        )

    def change(self, caller: Caller, group: str, change: GapChange) -> Gap:
        """Change the state of a gap.

        Raises:
            GapNotFoundError: The caller sees no such gap.
        """
        gaps, _ = self._read(caller, group)
        if not gaps:
            raise GapNotFoundError(f"There is no gap {group[:100]!r} that you may see")
        now = self.clock()
        with reaching_the_registry():
            key = to_item({PARTITION_KEY: GAP, SORT_KEY: group})
            expires = int(now) + STATE_KEPT_SECONDS
            self._update(key, {"state": change.state, "by": caller.name, "at": now, EXPIRES_AT: expires})
        return gaps[0].model_copy(update={"state": change.state, "state_by": caller.name})

    def _update(self, key: Item, values: Mapping[str, Any], added: Mapping[str, Any] | None = None) -> None:
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
        if added:
            expression += " ADD " + ", ".join(f"#{name} :{name}" for name in added)
        self.client.update_item(
            TableName=self.table,
            Key=key,
            UpdateExpression=expression,
            ExpressionAttributeNames={f"#{name}": name for name in {*values, *(added or {})}},
            ExpressionAttributeValues={
                **to_item({f":{name}": value for name, value in values.items()}),
                **{f":{name}": value for name, value in (added or {}).items()},
            },
        )

    def _read(self, caller: Caller, group: str = "") -> tuple[list[Gap], bool]:
        """Return the gaps that a caller may see, all or one, and whether everything was read."""
        with reaching_the_registry():
            rules = self.guard.rules()
            if Right.OPERATE not in rules.rights(caller) and not rules.writable(caller):
                return [], True
            condition, values = f"{PARTITION_KEY} = :gap", {":gap": GAP}
            if group:
                condition, values[":group"] = f"{condition} AND begins_with({SORT_KEY}, :group)", group
            items, is_complete = _taken(query_items(self.client, self.table, condition, values))
        labels, now = rules.labels(caller), self.clock()
        asked: defaultdict[str, list[Item]] = defaultdict(list)
        states: dict[str, Item] = {}
        for item in items:
            name, _, person = item[SORT_KEY]["S"].partition("#")
            if float(item[EXPIRES_AT]["N"]) <= now:
                continue  # DynamoDB removes it within days
            if not person:
                states[name] = item
            elif _count(item) and _is_visible(item, labels):
                asked[name].append(item)
        wanted = [each for each in asked if group in ("", each)]
        return [_gap(each, asked[each], states.get(each)) for each in wanted], is_complete


def _taken(items: Iterable[Item]) -> tuple[list[Item], bool]:
    """Read items up to the limits; return whether these are all."""
    found: list[Item] = []
    characters = 0
    for item in items:
        if len(found) == MAX_READ or characters > MAX_READ_CHARACTERS:
            return found, False
        found.append(item)
        characters += sum(len(item[name]["S"]) for name in ("question", "comment", "settings") if name in item)
    return found, True


def _is_visible(item: Item, labels: Collection[str] | None) -> bool:
    return labels is None or {*item.get("labels", {"SS": []})["SS"]} <= {*labels}


def _count(item: Item) -> int:
    """Count the questions of one person: a report or a judgment is of a question that was counted before."""
    return max(_number(item, name) for name in GapOutcomes.model_fields)


def _gap(group: str, items: Sequence[Item], state: Item | None) -> Gap:
    latest = max(items, key=lambda item: float(item["at"]["N"]))
    last_at = float(latest["at"]["N"])
    named: State = "open" if state is None else state["state"]["S"]
    if named == "answered" and state is not None and last_at > float(state["at"]["N"]):
        named = "open"
    with_comment = sorted(
        (item for item in items if "comment" in item), key=lambda item: float(item["comment_at"]["N"]), reverse=True
    )
    return Gap(
        id=group,
        question=latest["question"]["S"],
        count=sum(map(_count, items)),
        people=len(items),
        last_at=iso(last_at),
        outcomes=GapOutcomes(**{name: sum(_number(item, name) for item in items) for name in GapOutcomes.model_fields}),
        state=named,
        state_by=None if state is None else state["by"]["S"],
        comments=[
            GapComment(text=item["comment"]["S"], by=item["by"]["S"], at=iso(float(item["comment_at"]["N"])))
            for item in with_comment[:MAX_COMMENTS]
        ],
        settings=json.loads(latest["settings"]["S"]) if "settings" in latest else None,
    )


def _number(item: Item, name: str) -> int:
    return int(item.get(name, {}).get("N", 0))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _key(group: str, caller: Caller) -> Item:
    return to_item({PARTITION_KEY: GAP, SORT_KEY: f"{group}#{_digest(caller.name)}"})
