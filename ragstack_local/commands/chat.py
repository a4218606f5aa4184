"""``ragstack chat``."""

import sys
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.text import Text

from ragstack_common.core.errors import RagStackError
from ragstack_common.settings.limits import MAX_TURNS
from ragstack_common.settings.names import ALL_CORPORA
from ragstack_local.api.calls import each, run
from ragstack_local.connection.connection import Project
from ragstack_local.connection.roots import Roots
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.errors import FAILED, INTERRUPTED
from ragstack_local.search_options import AskOptions, EngineOptions
from ragstack_local.show import display
from ragstack_local.show.answers import advise_on_models, last, print_sources, print_stream
from ragstack_local.show.display import console

if TYPE_CHECKING:
    from ragstack_common.services.operations import Operations

PROMPT: Final = "> "

COMMANDS: Final = {
    "/sources": "show every passage that the last answer could use",
    "/corpus NAME": f"answer from this corpus only; {ALL_CORPORA} for every corpus",
    "/new": "start a new conversation",
    "/help": "show this list",
    "/quit": "leave, as Ctrl-D does; Ctrl-C stops an answer",
}


@with_options
def chat(options: AskOptions, engine: EngineOptions, stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """Ask questions in a conversation. The model sees the earlier turns; each search uses only the current question.

    /sources, /corpus NAME, /new, /help and /quit are commands. Ctrl-C stops the current answer, and at the prompt
    leaves. Questions can also come from a file or another program, one a line; --json prints one response of
    POST /api/ask a line.

    Example:  ragstack chat --corpus people

    From a file:  ragstack chat --json < notes/questions.txt
    """
    with engine.open(stack) as (operations, roots):
        conversation = Conversation(operations, options, Project.find().data, roots, as_json=as_json)
        _hold(conversation, is_interactive=sys.stdin.isatty())


def _hold(conversation: "Conversation", *, is_interactive: bool) -> None:
    """Read and enter lines until the end.

    Raises:
        Exit: The user interrupted, or a question of a file failed.
    """
    if is_interactive:
        with suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - input() then edits lines and remembers them
        conversation.console.print("Ask, or write /help.", style="dim")
    try:
        while (line := _line(conversation, is_interactive=is_interactive)) is not None:
            if not is_interactive and line.strip():
                conversation.console.print(f"{PROMPT}{line.strip()}", style="bold")
            if line.strip() == "/quit":
                break
            try:
                conversation.enter(line.strip())
            except KeyboardInterrupt:
                if not is_interactive:
                    raise
                conversation.console.print("Stopped. This question is not part of the conversation.", style="yellow")
    except KeyboardInterrupt:
        conversation.console.print()
        raise typer.Exit(INTERRUPTED) from None
    if conversation.failed and not is_interactive:
        raise typer.Exit(FAILED)


def _line(conversation: "Conversation", *, is_interactive: bool) -> str | None:
    if is_interactive and conversation.as_json:  # input() would print the prompt on the standard output
        conversation.console.print(PROMPT, end="")
    try:
        return input(PROMPT if is_interactive and not conversation.as_json else "")
    except EOFError:
        return None


@dataclass
class Conversation:
    """The questions and answers so far.

    Attributes:
        data: Folder that remembers what was explained once.
        roots: Where documents are on this machine.
        history: The turns, as the API takes them.
        answer: The last answer.
        failed: Whether a question failed.
    """

    operations: "Operations"
    options: AskOptions
    data: Path
    roots: Roots
    as_json: bool = False
    history: deque[dict[str, str]] = field(default_factory=lambda: deque(maxlen=MAX_TURNS))
    answer: Mapping[str, Any] | None = None
    failed: bool = False

    @property
    def console(self) -> display.Console:
        """The console for people."""
        return display.console_for(as_json=self.as_json)

    def enter(self, line: str) -> None:
        """Run a command, or answer a question; errors are printed."""
        command, _, argument = line.partition(" ")
        try:
            match command:
                case "":
                    pass
                case "/sources":
                    self._show_sources()
                case "/corpus":
                    self._choose_corpus(argument.strip())
                case "/new":
                    self.history.clear()
                    self.answer = None
                    self.console.print("A new conversation.", style="dim")
                case "/help":
                    for name, meaning in COMMANDS.items():
                        self.console.print(f"{name:14} {meaning}")
                case _ if command.startswith("/"):
                    self.console.print(f"There is no command {command}: write /help for a list.", style="yellow")
                case _:
                    self._ask(line)
        except RagStackError as error:
            self.failed = True
            if self.as_json:
                display.print_json({"question": line, "error": str(error)}, in_one_line=True)
            display.errors.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)

    def _ask(self, question: str) -> None:
        from ragstack_common.services.ask_models import AskRequest  # noqa: PLC0415 - help does without
        from ragstack_common.services.operations import parse_request  # noqa: PLC0415

        members = {"question": question, "chat_history": list(self.history), **self.options.body()}
        with closing(each(self.operations.ask(parse_request(AskRequest, members)))) as events:
            answer = last(events) if self.as_json else print_stream(events, self.roots)
        if self.as_json:
            display.print_json(answer, in_one_line=True)
        else:
            advise_on_models(answer, self.data)
            console.print()
        self.answer = answer
        self.history += [{"role": "user", "content": question}, {"role": "assistant", "content": answer["answer"]}]

    def _show_sources(self) -> None:
        if self.answer is None or not self.answer["sources"]:
            self.console.print("There are no sources yet." if self.answer is None else "The answer has no sources.")
        elif self.as_json:
            display.print_json(self.answer["sources"], in_one_line=True)
        else:
            print_sources(self.answer["sources"], self.answer["question"], self.roots)

    def _choose_corpus(self, name: str) -> None:
        """Answer from another corpus, if there is one of this name."""
        known = run(self.operations.corpora())
        names = [corpus.name for corpus in known.corpora]
        if name and (name == ALL_CORPORA or name in names or not known.complete):
            self.options = replace(self.options, corpus=name)
            self.console.print("Every corpus." if name == ALL_CORPORA else f"Only the corpus {name}.", style="dim")
            return
        if name:
            self.console.print(f"There is no corpus {name}.", style="yellow")
        current = self.options.corpus or ALL_CORPORA
        self.console.print(f"Corpus: {current}. Choose one of: {', '.join([*names, ALL_CORPORA])}", style="dim")
