"""Questions without a good answer, for people who can add documents: ``ragstack gaps``."""

from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import quote

import typer
from rich.text import Text

from ragstack_local.api.calls import run
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.show import display
from ragstack_local.show.display import console, counted, print_below

if TYPE_CHECKING:
    from ragstack_common.services.gap_models import Gap

GAPS: Final = "/api/gaps"

State = Literal["open", "answered", "dismissed"]

gaps = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@gaps.command("list")
@with_options
def list_gaps(
    stack: ConnectionOptions,
    state: Annotated[
        Literal["open", "answered", "dismissed", "all"], typer.Option(help="Only those in this state.")
    ] = "open",
    as_json: AsJson = False,
) -> None:
    """List gaps that you may see, the most frequent first, with what people wrote.

    Example:  ragstack gaps list

    Those that somebody closed as answered:  ragstack gaps list --state answered
    """
    from ragstack_common.services.gap_models import GapList  # noqa: PLC0415 - help does without

    found = run(stack.api().request("GET", GAPS, GapList))
    groups = [each for each in found.groups if state in (each.state, "all")]
    if as_json:
        display.print_json(found.model_copy(update={"groups": groups}))
        return
    for gap in groups:
        _print(gap)
    if not groups:
        console.print(f"There is no {'' if state == 'all' else f'{state} '}gap that you may see.")
    if found.left_out or not found.complete:
        more = f"{counted(found.left_out, 'more gap')} not shown" if found.left_out else "not all entries were read"
        console.print(f"The list is not complete: {more}.", style="yellow")
    if not found.stores_questions:
        console.print(
            "Questions without an answer are not stored (setting `questions`): only reports and bad answers count.",
            style="dim",
            soft_wrap=True,
        )


@gaps.command("set")
@with_options
def set_state(
    stack: ConnectionOptions,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `list` shows it.", show_default=False)],
    state: Annotated[State, typer.Argument(help="Its new state.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Close a gap, or open it again. An answered gap opens by itself when the question fails again.

    Example:  ragstack gaps set 5f70bf18a086007016e948b04aed3b82 answered
    """
    from ragstack_common.services.gap_models import Gap  # noqa: PLC0415 - help does without

    path = f"{GAPS}/{quote(identifier, safe='')}"
    changed = run(stack.api().request("PATCH", path, Gap, {"state": state}))
    if as_json:
        display.print_json(changed)
    else:
        _print(changed)


def _print(gap: "Gap") -> None:
    head = Text.assemble((f"{gap.count:>4}×  ", "cyan"), (gap.question, "bold"))  # noqa: RUF001 - times
    console.print(head, soft_wrap=True)
    outcomes = {
        "no answer": gap.outcomes.no_answer,
        "bad answer": gap.outcomes.bad,
        "reported": gap.outcomes.reported,
    }
    counts = ", ".join(f"{name} {count:,}" for name, count in outcomes.items() if count)
    who = "1 person" if gap.people == 1 else f"{gap.people:,} people"
    print_below(f"{who}, last {display.minute(gap.last_at)} UTC: {counts}")
    if gap.state_by is not None:
        print_below(f"{gap.state}, by {gap.state_by}", "green" if gap.state == "answered" else "dim")
    for comment in gap.comments:
        print_below(f"{comment.by}: {' '.join(comment.text.split())}", "italic")
    print_below(gap.id, "dim")
