"""Your conversations, kept for people who sign in: ``ragstack conversations``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from ragstack_local.api.calls import run
from ragstack_local.connection_options import AsJson, ConnectionOptions, confirm, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.services.conversation_models import Conversation, ConversationList
    from ragstack_local.api.http_operations import HttpOperations

CONVERSATIONS: Final = "/api/conversations"

Identifier = Annotated[UUID, typer.Argument(metavar="ID", help="Its id, as `list` shows it.", show_default=False)]

conversations = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@conversations.command("list")
@with_options
def list_conversations(
    stack: ConnectionOptions,
    query: Annotated[
        str | None, typer.Option(help="Only those whose title and questions have each of these words.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List your conversations, newest first.

    Example:  ragstack conversations list

    Those about leave in Berlin:  ragstack conversations list --query 'leave berlin'
    """
    found = run(_listed(stack.api(), query))
    if as_json:
        display.print_json(found)
    elif found.conversations:
        rows = [
            (each.title, str(each.turns), display.minute(each.updated_at), "yes" if each.shared else "", each.id)
            for each in found.conversations
        ]
        headings = ("title", "questions", "last answer (UTC)", "shared", "id")
        display.print_table(display.counted(len(rows), "conversation"), headings, rows)
    elif not found.enabled:
        why = (
            "this stack keeps none" if found.days == 0 else "only people who signed in have some: run `ragstack login`"
        )
        display.console.print(f"You have no conversations: {why}.", soft_wrap=True)
    else:
        display.console.print("You have no conversations" + (" with these words." if query else " yet."))
    if not found.conversations:
        raise typer.Exit(NOTHING_FOUND)


@conversations.command()
@with_options
def show(stack: ConnectionOptions, identifier: Identifier, as_json: AsJson = False) -> None:
    """Show a conversation: its questions, and the answers that you may still see.

    Example:  ragstack conversations show 0e8f1c52-8a5b-4d3f-9c55-7f6f2a1b3c4d
    """
    from ragstack_local.show.conversations import print_conversation  # noqa: PLC0415 - help does without

    found = run(_whole(stack.api(), identifier))
    if as_json:
        display.print_json(found)
    else:
        print_conversation(found)


@conversations.command()
@with_options
def export(
    stack: ConnectionOptions,
    identifier: Identifier,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, which must not exist.")
    ] = None,
) -> None:
    """Write a conversation as Markdown, each answer with its sources.

    Example:  ragstack conversations export 0e8f1c52-8a5b-4d3f-9c55-7f6f2a1b3c4d --output leave.md
    """
    from ragstack_local.show.conversations import as_markdown  # noqa: PLC0415 - help does without

    if output is not None and output.exists():
        raise typer.BadParameter(f"{output} exists already", param_hint="--output")
    found = run(_whole(stack.api(), identifier))
    text = as_markdown(found)
    if output is None:
        for line in text.splitlines():
            display.console.print(line, soft_wrap=True)
        return
    output.write_text(text, encoding="utf-8", newline="\n")
    questions = display.counted(len(found.turns), "question")
    display.console.print(f"Wrote {questions} with their answers to {output}", soft_wrap=True)


@conversations.command()
@with_options
def delete(
    stack: ConnectionOptions,
    identifiers: Annotated[
        list[UUID] | None, typer.Argument(metavar="ID", help="Their ids, as `list` shows them.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of yours; asks first, unless --yes is given.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete conversations, with the links to them. Nobody can bring them back.

    Example:  ragstack conversations delete 0e8f1c52-8a5b-4d3f-9c55-7f6f2a1b3c4d

    All of yours:  ragstack conversations delete --all
    """
    from ragstack_common.services.conversation_models import DeletedConversations  # noqa: PLC0415 - help does without

    if bool(identifiers) == everything:
        raise typer.BadParameter("name conversations, or give --all", param_hint="ID")
    api = stack.api()
    if everything and not yes:
        confirm("Delete all of your conversations?")
    paths = [CONVERSATIONS] if everything else [f"{CONVERSATIONS}/{each}" for each in dict.fromkeys(identifiers or [])]
    deleted = sum(run(api.request("DELETE", path, DeletedConversations)).deleted for path in paths)
    if as_json:
        display.print_json(DeletedConversations(deleted=deleted))
    else:
        display.console.print(f"Deleted {display.counted(deleted, 'conversation')}")


async def _listed(api: "HttpOperations", query: str | None) -> "ConversationList":
    """Return all pages as one."""
    from ragstack_common.services.conversation_models import ConversationList  # noqa: PLC0415 - as above

    parameters: dict[str, str | int | None] = {"query": query, "limit": 100}
    found = page = await api.request("GET", CONVERSATIONS, ConversationList, parameters=parameters)
    while page.next_token is not None:
        parameters["next_token"] = page.next_token
        page = await api.request("GET", CONVERSATIONS, ConversationList, parameters=parameters)
        found.conversations.extend(page.conversations)
    return found.model_copy(update={"next_token": None})


async def _whole(api: "HttpOperations", identifier: UUID) -> "Conversation":
    """Return a conversation with the turns of all pages."""
    from ragstack_common.services.conversation_models import Conversation  # noqa: PLC0415 - as above

    path = f"{CONVERSATIONS}/{identifier}"
    found = page = await api.request("GET", path, Conversation)
    turns = page.turns
    while page.next_token is not None:
        page = await api.request("GET", path, Conversation, parameters={"next_token": page.next_token})
        turns = [*page.turns, *turns]
    return found.model_copy(update={"turns": turns, "next_token": None})
