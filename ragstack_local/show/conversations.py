"""How conversations are shown in a terminal, and written as Markdown."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ragstack_common.core.uris import is_s3_uri, key_of_uri
from ragstack_local.show.display import console, counted, minute, print_below
from ragstack_local.show.results import describe_place

if TYPE_CHECKING:
    from ragstack_common.services.conversation_models import Conversation, ConversationTurn

WITHHELD: Final = {
    "rights": "This answer is from documents that you may not see now.",
    "deleted": "This answer is from a document that was deleted.",
}


def print_conversation(found: "Conversation") -> None:
    """Print the questions and answers, with sources, and which of them have changed since."""
    console.print(Text(found.title, "bold"), soft_wrap=True)
    questions = counted(len(found.turns), "question")
    shared = ", shared by a link" if found.shared else ""
    kept = f"the last at {minute(found.updated_at)} UTC, kept until {minute(found.expires_at)}"
    console.print(f"{questions}{shared}: {kept}", style="dim")
    for turn in found.turns:
        console.print()
        console.print(Text.assemble((turn.question, "cyan"), (f"  {minute(turn.at)}", "dim")))
        console.print(_answer(turn))
        for source in _sources(turn):
            print_below(source, "dim")
        for uri in turn.changed:
            print_below(f"Changed since: {uri}", "yellow")


def as_markdown(found: "Conversation") -> str:
    """Write the questions as headings, and below each the answer with a list of its sources, as the console does."""
    parts = [f"# {_one_line(found.title)}"]
    for turn in found.turns:
        answer = _answer(turn)
        parts += [f"## {_one_line(turn.question)}", f"*{answer}*" if turn.response is None else answer]
        if sources := [f"- {source}" for source in _sources(turn)]:
            parts.append("\n".join(sources))
    return "\n\n".join(parts) + "\n"


def _answer(turn: "ConversationTurn") -> str:
    if turn.response is None:
        return WITHHELD[turn.withheld or "rights"]
    return str(turn.response["answer"])


def _sources(turn: "ConversationTurn") -> Iterator[str]:
    for source in (turn.response or {}).get("sources", []):
        if source["cited"]:
            yield f"[{source['number']}] " + ", ".join(filter(None, (_name(source), describe_place(source, None))))


def _name(source: Mapping[str, Any]) -> str:
    uri = source["source"] or "unnamed document"
    return key_of_uri(uri) if is_s3_uri(uri) else uri


def _one_line(text: str) -> str:
    return " ".join(text.split())
