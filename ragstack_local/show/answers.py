"""How answers are shown in a terminal: text as it arrives, then numbered sources, and what to know about them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.text import Text

from ragstack_common.text.excerpts import closest_sentence, excerpt
from ragstack_common.text.positions import SEPARATOR, section_over
from ragstack_local.connection.roots import Roots
from ragstack_local.show import display
from ragstack_local.show.display import console, counted, print_indented
from ragstack_local.show.results import describe_place, print_incomplete, print_local_file, print_remarks

if TYPE_CHECKING:
    from ragstack_common.services.ask_models import StreamEvent

NUMBER_INDENT: Final = 5
MAX_QUOTED_CHARACTERS: Final = 300
HIGH_CONFIDENCE: Final = 0.75
UNSUPPORTED_SHOWN: Final = 5
UNSUPPORTED_CHARACTERS: Final = 120

MODELS: Final = (
    ("Ollama, LM Studio, llama.cpp", "ragstack up --llm auto"),
    ("any OpenAI-compatible server", "ragstack up -- --llm-url URL --llm-model MODEL   (key: RAGSTACK_LLM_API_KEY)"),
    ("Amazon Bedrock", "npx cdk deploy --all -c answer_model=MODEL_ID   (with --collection: ANSWER_MODEL=MODEL_ID)"),
)
"""Models that can write the answers, and the command for each."""

_MARKER: Final = r"\[\d+(?:, ?\d+)*\]"
_WORD: Final = re.compile(r"\S+|\n|[^\S\n]+")

_STOPPED: Final = {
    "guardrail_intervened": "A guardrail intervened in the answer.",
    "content_filtered": "The model's content filter ended the answer.",
}


class Typewriter:
    """Prints a text that arrives in pieces, and wraps it between words where the output is a terminal."""

    def __init__(self) -> None:
        self._pending = ""
        self._column = 0

    def write(self, piece: str) -> None:
        """Print a piece, except for its last word, which may continue."""
        words = _WORD.findall(self._pending + piece)
        self._pending = words.pop() if words else ""
        for word in words:
            self._print(word)

    def end(self) -> None:
        """Print the rest, and end the line."""
        self._print(self._pending)
        self._pending = ""
        if self._column:
            self._print("\n")

    def _print(self, word: str) -> None:
        word = display.printable(word)
        cells = cell_len(word)
        if word == "\n":
            self._column = 0
        elif console.is_terminal and self._column and self._column + cells > console.width:
            console.print()
            word = word.lstrip()
            self._column = cells if word else 0
        else:
            self._column += cells
        text = Text(word)
        text.highlight_regex(_MARKER, "bold cyan")
        console.print(text, end="", no_wrap=True, overflow="ignore", crop=False)


def last(events: "Iterable[StreamEvent]") -> dict[str, Any]:
    """Return the last event of an answer, the response of ``POST /api/ask``, as JSON."""
    *_, answer = events
    return answer.model_dump(mode="json")


def print_stream(events: "Iterable[StreamEvent]", roots: Roots | None = None) -> dict[str, Any]:
    """Print an answer as it arrives, then its sources; return the response of ``POST /api/ask``.

    Errors of *events* pass through, after the line of the answer has ended.
    """
    from ragstack_common.answers.answer import TokenEvent  # noqa: PLC0415 - help does without
    from ragstack_common.services.ask_models import AskResponse, SourcesEvent  # noqa: PLC0415

    typewriter = Typewriter()
    answer: dict[str, Any] = {}
    with ExitStack() as cleanup:
        cleanup.callback(typewriter.end)
        status = cleanup.enter_context(console.status("Searching ..."))
        for event in events:
            match event:
                case SourcesEvent():
                    status.update(Text(f"Reading {counted(len(event.sources), 'passage')} ..."))
                case TokenEvent():
                    status.stop()
                    typewriter.write(event.text)
                case AskResponse():
                    answer = event.model_dump(mode="json")
    _print_unsupported(answer)
    cited = [source for source in answer["sources"] if source["cited"]]
    print_sources(cited, answer["question"], roots)
    if not cited and answer["closest"]:
        console.print("\nThe closest documents:")
        _print_closest(answer["closest"], roots)
    _print_remarks(answer)
    return answer


def _print_closest(documents: Iterable[Mapping[str, Any]], roots: Roots | None) -> None:
    for document in documents:
        about = document["version"] or document["date"]
        console.print()
        console.print(Text.assemble((document["title"], "bold"), (f"  {about}" if about else "", "dim")))
        _print_location(document, document["section"], roots)
        print_indented(NUMBER_INDENT, (document["excerpt"], "dim"))


def print_sources(sources: Iterable[Mapping[str, Any]], question: str, roots: Roots | None = None) -> None:
    """Print numbered sources: title, location, and what the answer quotes, else what fits the question best."""
    for source in sources:
        number, title, content = f"[{source['number']}]", _title(source), source["content"]
        start = closest_sentence(content, question).start
        section = source["section"] if source["quoted"] else section_over(content, [start], source["section"])
        headings = SEPARATOR.join(name for name in (section or "").split(SEPARATOR) if name != title)
        console.print()
        console.print(Text.assemble((f"{number:<{NUMBER_INDENT}}", "bold cyan"), (title, "bold")))
        _print_location(source, headings, roots)
        for parts in {tuple(_quotation(content, part)): None for part in source["quoted"]}:
            print_indented(NUMBER_INDENT, *parts)
        if not source["quoted"]:
            print_indented(NUMBER_INDENT, (excerpt(content, question), "dim"))


def _print_location(source: Mapping[str, Any], section: str | None, roots: Roots | None) -> None:
    location, place = " " * NUMBER_INDENT + (source["source"] or "(no source)"), describe_place(source, section)
    # A location is never wrapped: users copy it.
    console.print(Text.assemble(location, (f"  {place}" if place else "", "italic")), soft_wrap=True)
    print_local_file(source["source"], roots, NUMBER_INDENT)


def _quotation(content: str, part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a quotation, and the sentences before and after it, with their styles."""

    def one_line(start: int, end: int, style: str) -> Iterator[tuple[str, str]]:
        if text := " ".join(content[start:end].split()):
            yield text, style

    around = part["context"] or part
    yield from ((f"{text} ", style) for text, style in one_line(around["start"], part["start"], "dim"))
    for text, style in one_line(part["start"], part["end"], "green"):
        shown = text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[:MAX_QUOTED_CHARACTERS].rstrip()} …"
        yield f"“{shown}”", style
    yield from ((f" {text}", style) for text, style in one_line(part["end"], around["end"], "dim"))


def _title(source: Mapping[str, Any]) -> str:
    """Return the document's title if it is known, else the name of its file."""
    title, separator, _ = (source["section"] or "").partition(SEPARATOR)
    known = (source["context"] or "").partition("\n")[0] or (title if separator else "")
    return known or PurePosixPath(source["source"] or "(no source)").name


def advise_on_models(answer: Mapping[str, Any], data: Path) -> None:
    """Explain how to add a model, once for each data folder, after the first answer without a model."""
    shown = data / "answer-advice-shown"
    if not answer["answerer"]["quotes"] or shown.exists():
        return
    with suppress(OSError):  # without the file, it is explained again
        data.mkdir(parents=True, exist_ok=True)
        shown.touch()
    console.print("\nThere is no model, so answers quote the documents. To let a model write them:")
    for model, command in MODELS:
        console.print(f"  {model:29} {command}", soft_wrap=True)  # users copy it


def _print_unsupported(answer: Mapping[str, Any]) -> None:
    sentences = answer["sentences"]
    unsupported = [
        " ".join(sentence["text"].split())
        for sentence in sentences
        if sentence["unsupported"] or sentence["support"] == "not supported"
    ]
    if not (unsupported and answer["answered"]):
        return
    if len(unsupported) == len(sentences):
        console.print("\nNo source supports this answer.", style="yellow")
        return
    console.print("\nNot supported by a source:", style="yellow")
    for text in unsupported[:UNSUPPORTED_SHOWN]:
        shown = text if len(text) <= UNSUPPORTED_CHARACTERS else f"{text[:UNSUPPORTED_CHARACTERS].rstrip()} …"
        print_indented(2, (f"- {shown}", "yellow"))
    if more := unsupported[UNSUPPORTED_SHOWN:]:
        console.print(f"  and {counted(len(more), 'more sentence')}", style="yellow")


def _print_remarks(answer: Mapping[str, Any]) -> None:
    console.print()
    answerer, timings, usage = answer["answerer"], answer["timings"], answer["usage"]
    if removed := answer["removed_citations"]:
        were = "was" if removed == 1 else "were"
        console.print(f"{counted(removed, 'citation')} named no source and {were} removed.", style="yellow")
    if answer["cut_off"]:
        limit = "The answer is cut off: it reached the maximum number of tokens (ANSWER_MAX_TOKENS)."
        console.print(limit, style="yellow")
    if remark := _STOPPED.get(answer["stop_reason"] or ""):
        console.print(remark, style="yellow")
    print_remarks(answer)
    print_incomplete(answer)
    uncited = sum(not source["cited"] for source in answer["sources"])
    has_text = answer["answered"] or answer["closest_passages"]
    parts = [
        (f"Quoted, without a model{_confidence(answer)}" if answerer["quotes"] else answerer["model"])
        if has_text
        else None,
        counted(uncited, "more passage") + " read" if uncited else None,
        f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens" if answerer["provider"] == "bedrock" else None,
        f"{_time(timings['total_ms'])} (search {_time(timings['retrieval_ms'])})",
    ]
    console.print("; ".join(part for part in parts if part), style="dim")


def _confidence(answer: Mapping[str, Any]) -> str:
    confidence = answer["confidence"]
    if confidence is None:
        return ""
    level = "high" if confidence >= HIGH_CONFIDENCE else "medium" if answer["answered"] else "low"
    return f", with {level} confidence"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"  # noqa: PLR2004 - ms in s
