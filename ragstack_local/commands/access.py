"""Who sees which documents: ``ragstack access``. Changes count from the next request on."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from rich.text import Text

from ragstack_common.access.rules import Effect
from ragstack_local.api.calls import run
from ragstack_local.connection_options import AsJson, ConnectionOptions, confirm, with_options
from ragstack_local.errors import NOTHING_FOUND, UsageError
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.services.access import Explanation, LabelView, SeenPerson
    from ragstack_local.api.http_operations import HttpOperations

ACCESS: Final = "/api/access"

Label = Annotated[str, typer.Argument(help="A label of the access file.", show_default=False)]
Principal = Annotated[
    str, typer.Argument(help="Who: user:NAME, group:NAME, role:ARN, key:NAME, ... or everyone.", show_default=False)
]

access = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@access.command()
@with_options
def show(
    stack: ConnectionOptions,
    label: Annotated[str | None, typer.Argument(help="Only this label.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Show the rules in effect: the access file, and the changes since.

    Example:  ragstack access show

    One label:  ragstack access show people
    """
    from ragstack_common.services.access import RulesView  # noqa: PLC0415 - imports the AWS SDK

    rules = run(stack.api().request("GET", ACCESS, RulesView, parameters={"label": label}))
    if as_json:
        display.print_json(rules)
        return
    if not rules.labels:
        display.console.print("This stack has no access file: every caller may see and do everything.")
        return
    _print_labels(rules.labels)
    if label is None:
        rights = [(right, ", ".join(holders)) for right, holders in rules.rights.items()]
        display.print_table("Rights", ("right", "held by"), rights)
        prefixes = [
            (prefix or "all keys", rule["default"] or "none", ", ".join(rule["labels"]), ", ".join(rule["writers"]))
            for prefix, rule in rules.prefixes.items()
        ]
        display.print_table("Labels by key", ("prefix", "default", "others", "writers"), prefixes)
    changes = [(each.label, str(each.effect), each.principal, each.by, each.at) for each in rules.changes]
    if changes:
        display.print_table("Changes of the file", ("label", "effect", "principal", "by", "at"), changes)


@access.command()
@with_options
def grant(stack: ConnectionOptions, label: Label, principal: Principal, as_json: AsJson = False) -> None:
    """Allow a principal to see the documents of a label.

    Example:  ragstack access grant people user:bob
    """
    _change(stack.api(), label, principal, Effect.ALLOW, as_json=as_json)


@access.command()
@with_options
def revoke(
    stack: ConnectionOptions,
    label: Label,
    principal: Principal,
    reset: Annotated[
        bool, typer.Option("--reset", help="Remove an earlier change instead, so that the access file counts again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Hide the documents of a label from a principal, whatever else allows them.

    A denied principal stays denied even if another of the caller's principals is allowed.

    Example:  ragstack access revoke people user:alice

    Back to the access file:  ragstack access revoke people user:alice --reset
    """
    _change(stack.api(), label, principal, None if reset else Effect.DENY, as_json=as_json)


@access.command()
@with_options
def explain(
    stack: ConnectionOptions,
    document: Annotated[str, typer.Argument(help="The document's key or URI.", show_default=False)],
    viewer: Annotated[
        str, typer.Option("--as", metavar="PRINCIPALS", help="Who looks, such as user:alice,group:people.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show whether a user sees a document, and which rule decides it.

    A user who is named alone has the groups with which they were seen last.

    Example:  ragstack access explain samples/documents/people/leave-and-holidays-2026.md --as user:bob,group:staff
    """
    found = run(explained(stack.api(), document, viewer))
    if as_json:
        display.print_json(found)
        return
    verdict = ("sees", "green") if found.visible else ("does not see", "red")
    display.console.print(Text.assemble((viewer, "bold"), " ", verdict, f" {found.uri}"), soft_wrap=True)
    display.console.print(f"Label    {found.label or 'none'}: {found.label_rule}", soft_wrap=True)
    display.console.print(f"Rule     {found.rule}", soft_wrap=True)
    if found.seen_at:
        groups = [name for name in found.principals if not name.startswith("user:")]
        display.console.print(f"Groups   {', '.join(groups) or 'none'}, as seen at {found.seen_at}", soft_wrap=True)
    if found.note:
        display.console.print(f"Note     {found.note}", style="yellow", soft_wrap=True)


@access.command()
@with_options
def people(stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """List the people and programs that the service has seen in the last 90 days, and what they may do.

    Example:  ragstack access people
    """
    found = run(_people(stack.api()))
    if as_json:
        display.print_json({"people": found})
        return
    rows = [
        (
            each.principal,
            display.minute(each.last_seen),
            ", ".join(each.groups),
            ", ".join(each.rights),
            "everything" if each.labels is None else ", ".join(each.labels),
            ", ".join(place.prefix or "everywhere else" for place in each.writable),
        )
        for each in found
    ]
    if rows:
        display.print_table("Who was seen", ("who", "last seen (UTC)", "groups", "rights", "sees", "writes"), rows)
    else:
        display.console.print("Nobody was seen: callers are noted if they prove who they are.")


@access.command()
@with_options
def erase(
    stack: ConnectionOptions,
    principal: Annotated[
        str, typer.Argument(help="Who, as `people` shows them, such as user:alice.", show_default=False)
    ],
    former_issuers: Annotated[
        list[str] | None,
        typer.Option(
            "--former-issuer",
            metavar="URL",
            help="Another issuer where the person signed in before; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the conversations of a person, their questions in gaps, and their entry in the list of people.

    Documents, judgments, changes of rules, logs and backups stay. Take their rights first: who still asks is stored
    again. Nobody can read the conversations, or bring them back.

    Example:  ragstack access erase user:alice
    """
    from ragstack_common.services.erasure import ErasedPerson  # noqa: PLC0415 - imports the AWS SDK

    api = stack.api()
    if not yes:
        confirm(f"Delete what is stored of {principal}?")
    body = {"principal": principal, "former_issuers": former_issuers or []}
    found = run(api.request("POST", "/api/people/erase", ErasedPerson, body))
    if as_json:
        display.print_json(found)
    else:
        counted = display.counted
        parts = (counted(found.conversations, "conversation"), counted(found.gaps, "gap"))
        entry = "the entry" if found.seen else "no entry"
        display.console.print(f"Deleted of {principal}: {', '.join(parts)}, {entry} in the list of people")
    if not (found.conversations or found.gaps or found.seen):
        raise typer.Exit(NOTHING_FOUND)


async def _people(api: "HttpOperations") -> "list[SeenPerson]":
    from ragstack_common.services.access import PeopleList  # noqa: PLC0415 - imports the AWS SDK

    found: list[SeenPerson] = []
    token: str | None = None
    while True:
        page = await api.request("GET", "/api/people", PeopleList, parameters={"next_token": token})
        found += page.people
        token = page.next_token
        if token is None:
            return found


class Expectation(BaseModel):
    """What one caller should see."""

    model_config = ConfigDict(extra="forbid")

    viewer: str = Field(alias="as")
    sees: list[str] = []
    hidden: list[str] = []


@dataclass(frozen=True)
class _Checked:
    viewer: str
    document: str
    expected: str
    found: str
    rule: str
    depends_on: list[str]


@access.command("test")
@with_options
def check(
    stack: ConnectionOptions,
    file: Annotated[
        Path, typer.Argument(help='JSON: [{"as": "user:bob", "sees": [KEY, ...], "hidden": [KEY, ...]}, ...]')
    ],
    as_json: AsJson = False,
) -> None:
    """Compare what callers see with a file of what they should see; exit with 1 if something differs.

    A document that was never uploaded differs too, so that a misspelled key is noticed.

    Example:  ragstack access test samples/access_tests.json
    """
    checked = run(_checked(stack.api(), _read(file)))
    different = [each for each in checked if each.found != each.expected]
    if as_json:
        display.print_json({"checked": len(checked), "different": [vars(each) for each in different]})
    elif different:
        rows = [(each.viewer, each.document, each.expected, each.found, each.rule) for each in different]
        headings = ("who", "document", "expected", "found", "rule")
        display.print_table(f"{len(different)} of {len(checked)} expectations are not met", headings, rows)
    else:
        display.console.print(f"All {display.counted(len(checked), 'expectation')} are met.")
    if uncertain := sorted({each.viewer for each in checked if each.depends_on}):
        display.console_for(as_json=as_json).print(
            f"{', '.join(uncertain)}: other groups would see something else. Name those of the user, if there are any",
            style="yellow",
            soft_wrap=True,
        )
    if different:
        raise typer.Exit(NOTHING_FOUND)


async def explained(api: "HttpOperations", document: str, viewer: str) -> "Explanation":
    """Return whether a user sees a document, and why."""
    from ragstack_common.services.access import Explanation  # noqa: PLC0415 - imports the AWS SDK

    return await api.request("GET", f"{ACCESS}/explain", Explanation, parameters={"as": viewer, "document": document})


async def _checked(api: "HttpOperations", expectations: list[Expectation]) -> list[_Checked]:
    from ragstack_common.services.access import UNKNOWN_DOCUMENT  # noqa: PLC0415 - imports the AWS SDK

    slots = asyncio.Semaphore(8)

    async def look(viewer: str, document: str, expected: str) -> _Checked:
        async with slots:
            found = await explained(api, document, viewer)
        state = "unknown" if found.label_rule == UNKNOWN_DOCUMENT else "sees" if found.visible else "hidden"
        return _Checked(viewer, document, expected, state, found.rule, found.depends_on)

    return await asyncio.gather(
        *(look(each.viewer, key, "sees") for each in expectations for key in each.sees),
        *(look(each.viewer, key, "hidden") for each in expectations for key in each.hidden),
    )


def _read(file: Path) -> list[Expectation]:
    try:
        found = TypeAdapter(list[Expectation]).validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise UsageError(f"{file} is not a list of expectations: {place}: {problem['msg']}") from error
    if not any(each.sees or each.hidden for each in found):
        raise UsageError(f"{file} has no expectations")
    return found


def _change(api: "HttpOperations", label: str, principal: str, effect: Effect | None, *, as_json: bool) -> None:
    from ragstack_common.services.access import LabelView  # noqa: PLC0415 - imports the AWS SDK

    body: dict[str, Any] = {"label": label, "principal": principal, "effect": effect}
    found = run(api.request("POST", ACCESS, LabelView, body))
    if as_json:
        display.print_json(found)
    else:
        _print_labels([found])


def _print_labels(labels: "list[LabelView]") -> None:
    rows = [(each.label, ", ".join(each.allow), ", ".join(each.deny)) for each in labels]
    display.print_table("Who sees the documents of each label", ("label", "allowed", "denied"), rows)
